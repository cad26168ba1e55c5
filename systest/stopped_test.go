package systest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const stoppedTTL = 500 * time.Millisecond

// A role is how a holder learns that it has lost the lock.
type role string

const (
	asks  role = "asks"  // calls Valid all the time; its timers hardly run
	waits role = "waits" // waits for the end of the lease's context
)

// A holderReport is one report of a holder. Its instants are of the wall clock, which all processes
// of a machine share.
type holderReport struct {
	Token uint64    // first report: the token of its lease
	Valid bool      // second report: the result of the first Valid after the pause
	At    time.Time // when Valid returned, or the context had ended
	Lost  bool      // the context's cause is ErrLost

	Refused bool // the fenced resource refused what the holder wrote after the pause
}

// hold is a job: the crew acquires the lock, reads a resource, and reports what it saw after it was
// stopped for long. Then it writes without checking the lease.
func hold(r role) func(ctx context.Context, j traffic.Job) (any, error) {
	return func(ctx context.Context, j traffic.Job) (any, error) {
		engine, err := redislock.Open(ctx, j.Store)
		if err != nil {
			return nil, err
		}
		defer engine.Close()
		plain, err := rueidis.NewClient(rueidis.MustParseURL(j.Store))
		if err != nil {
			return nil, err
		}
		defer plain.Close()
		client, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
		if err != nil {
			return nil, err
		}
		lease, err := client.TryAcquire(ctx, j.Name, &holdfast.AcquireOptions{TTL: stoppedTTL})
		if err != nil {
			return nil, err
		}
		guard, err := redisfence.New(engine, nil)
		if err != nil {
			return nil, err
		}
		l := ledger{guard, plain, "ledger/" + j.Name}
		fenced, unfenced, err := l.read(ctx, lease)
		if err != nil {
			return nil, err
		}
		announced := time.Now() // the test may stop this process at once
		j.Out(holderReport{Token: lease.Token()})
		var report holderReport
		if r == asks {
			report.Valid = firstValidAfterPause(lease, announced)
		} else {
			<-lease.Context().Done()
		}
		report.At = time.Now()
		<-lease.Context().Done()
		report.Lost = errors.Is(context.Cause(lease.Context()), holdfast.ErrLost)
		report.Refused, err = l.write(ctx, lease, fenced+1, unfenced+1)
		return report, err
	}
}

// firstValidAfterPause calls Valid in a loop and returns the result of the first call that began
// after a pause of the process. The pause comes after last. A call during which the process was
// stopped cannot know of the pause.
//
// On one processor, a loop that never blocks continues before any due timer runs, so only Valid
// itself can have noticed the pause.
func firstValidAfterPause(lease *holdfast.Lease, last time.Time) bool {
	runtime.GOMAXPROCS(1)
	for paused := false; ; {
		before := time.Now()
		valid := lease.Valid()
		after := time.Now()
		if paused || before.Sub(last) > stoppedTTL {
			return valid
		}
		paused = after.Sub(before) > stoppedTTL
		last = after
	}
}

// A ledger is two counters in the store, of which one is fenced.
type ledger struct {
	guard *redisfence.Guard
	plain rueidis.Client
	name  string
}

// read returns both counters. From now on the fenced counter refuses earlier holders.
func (l *ledger) read(ctx context.Context, lease *holdfast.Lease) (fenced, unfenced int64, err error) {
	if err := l.guard.Advance(ctx, l.name, lease); err != nil {
		return 0, 0, err
	}
	for key, value := range map[string]*int64{l.name: &fenced, l.name + "/unfenced": &unfenced} {
		*value, err = l.plain.Do(ctx, l.plain.B().Get().Key(key).Build()).AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			return 0, 0, err
		}
	}
	return fenced, unfenced, nil
}

// write sets both counters, and reports whether the fenced counter refused.
func (l *ledger) write(ctx context.Context, lease *holdfast.Lease, fenced, unfenced int64) (refused bool, err error) {
	err = l.guard.Set(ctx, l.name, lease, strconv.FormatInt(fenced, 10), 0)
	if refused = errors.Is(err, fence.ErrStale); refused {
		err = nil
	}
	set := l.plain.B().Set().Key(l.name + "/unfenced").Value(strconv.FormatInt(unfenced, 10)).Build()
	return refused, errors.Join(err, l.plain.Do(ctx, set).Error())
}

// A pause is what was measured of one stopped holder.
type pause struct {
	takeOver time.Duration // from SIGSTOP until the rival had the lock
	knew     time.Duration // from SIGCONT until the holder learned of its loss
	// How many acknowledged updates the counters lack.
	lostFenced, lostUnfenced int64
}

// TestStoppedHolderFindsOutWhenItWakes checks a holder whose timers do not run because it is
// stopped for twice the TTL. It learns of its loss from the first Valid, its context ends at once,
// and its later writes are refused. INVARIANT I3.
func TestStoppedHolderFindsOutWhenItWakes(t *testing.T) {
	s := newStore(t)
	rival := newClient(t, s.engine, nil)
	var mu sync.Mutex
	var pauses []pause
	t.Run("holders", func(t *testing.T) {
		for i := range soak.Count(6, 50) {
			r := []role{asks, waits}[i%2]
			t.Run(fmt.Sprintf("%s/%d", r, i), func(t *testing.T) {
				t.Parallel()
				p := stopHolder(t, s, rival, r, t.Name())
				mu.Lock()
				defer mu.Unlock()
				pauses = append(pauses, p)
			})
		}
	})
	const bound = 10 * time.Millisecond
	soon, longest := 0, time.Duration(0)
	lostFenced, lostUnfenced := int64(0), int64(0)
	for _, p := range pauses {
		longest = max(longest, p.takeOver)
		lostFenced += p.lostFenced
		lostUnfenced += p.lostUnfenced
		if p.knew <= bound {
			soon++
		}
	}
	report.Row(t, "SIGSTOP of the holder for 2 × TTL", "Valid() false at its first call, context ended within 10 ms of waking, next holder within TTL + 250 ms, 0 lost updates at the fenced resource (unfenced: more than 0)",
		"%d holders: Valid() false at its first call in all; %d knew within %s of SIGCONT; next holder after %s at most, TTL %s; lost updates: fenced %d, unfenced %d",
		len(pauses), soon, bound, longest.Round(time.Millisecond), stoppedTTL, lostFenced, lostUnfenced)
	// A busy machine delivers the signal late and wakes the rival late, so only a soak judges these
	// times.
	if soak.Long() && soon < len(pauses)*3/4 {
		t.Errorf("only %d of %d holders knew within %s of SIGCONT", soon, len(pauses), bound)
	}
	if soak.Long() && longest > stoppedTTL+250*time.Millisecond {
		t.Errorf("the next holder came after %s, the TTL is %s", longest, stoppedTTL)
	}
	if lostFenced != 0 || lostUnfenced == 0 {
		t.Errorf("%d updates of the fenced resource and %d of the other are lost, want 0 and some", lostFenced, lostUnfenced)
	}
}

// stopHolder stops a holder that has read the ledger, lets a rival take over and write, and wakes
// the holder, which writes the values it computed before.
func stopHolder(t *testing.T, s *store, rival *holdfast.Client, r role, name string) (p pause) {
	t.Helper()
	h := traffic.Start(t, traffic.Job{Job: string(r), Store: s.server.URL, Name: name})
	h.Begin()
	var held, report holderReport
	h.Next(&held)
	h.Stop()
	stopped := time.Now()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := rival.Acquire(ctx, name, nil)
	if err != nil {
		t.Fatalf("the rival waits in vain for a stopped holder's lock: %v", err)
	}
	p.takeOver = time.Since(stopped)
	if lease.Token() <= held.Token {
		t.Errorf("token of the rival %d, of the stopped holder %d", lease.Token(), held.Token)
	}
	guard, err := redisfence.New(s.engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := ledger{guard, s.plain, "ledger/" + name}
	fenced, unfenced, err := l.read(ctx, lease)
	if err != nil {
		t.Fatal(err)
	}
	if refused, err := l.write(ctx, lease, fenced+1, unfenced+1); refused || err != nil {
		t.Fatalf("the rival's write: refused %t, %v", refused, err)
	}
	time.Sleep(time.Until(stopped.Add(2 * stoppedTTL))) // while the holder is stopped
	woken := time.Now()
	h.Cont()
	h.Next(&report)
	p.knew = report.At.Sub(woken.Round(0))
	if report.Valid {
		t.Error("the first Valid after the pause is true")
	}
	if !report.Lost {
		t.Error("the context's cause is not ErrLost")
	}
	fencedWrites, unfencedWrites := int64(2), int64(2)
	if report.Refused {
		fencedWrites--
	}
	fenced, unfenced, err = l.read(ctx, lease)
	if err != nil {
		t.Fatal(err)
	}
	p.lostFenced, p.lostUnfenced = fencedWrites-fenced, unfencedWrites-unfenced
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return p
}
