package systest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const stoppedTTL = 500 * time.Millisecond

// A role is how a holder finds out that it has lost the lock.
type role string

const (
	asks  role = "asks"  // calls Valid all the time; its timers hardly get to run
	waits role = "waits" // waits for the end of the lease's context
)

// A holderReport is one report of a holder. Instants are those of the wall
// clock, which all processes of a machine share.
type holderReport struct {
	Token uint64    // first report: it holds the lock
	Valid bool      // second report: what the first Valid after the pause said
	At    time.Time // when Valid said so, or the context had ended
	Lost  bool      // the context's cause is ErrLost
}

// hold is a job: the crew takes the lock, and says what it saw when it was
// stopped for long.
func hold(r role) func(ctx context.Context, j traffic.Job) (any, error) {
	return func(ctx context.Context, j traffic.Job) (any, error) {
		engine, err := traffic.Open(ctx, j.Store)
		if err != nil {
			return nil, err
		}
		client, err := holdfast.New(engine, nil)
		if err != nil {
			return nil, err
		}
		lease, err := client.TryAcquire(ctx, j.Name, &holdfast.AcquireOptions{TTL: stoppedTTL})
		if err != nil {
			return nil, err
		}
		announced := time.Now() // the pause may begin as soon as the test knows
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
		return report, nil
	}
}

// firstValidAfterPause calls Valid without a break and returns what the first
// call that began after a pause of the process said; the pause is somewhere
// after last. A call during which the process was stopped could not know.
//
// On one processor, a loop that never blocks is back before any timer that
// has become due: nobody but Valid itself can have noticed the pause.
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

// INVARIANT I3, for a holder whose timers do not run: stopped for twice the
// TTL, it finds out by the first Valid, and its context ends at once.
func TestStoppedHolderFindsOutWhenItWakes(t *testing.T) {
	s := newStore(t)
	rival := newClient(t, s.engine, nil)
	for _, r := range []role{asks, waits} {
		t.Run(string(r), func(t *testing.T) {
			t.Parallel()
			// What the holder says must be true each time. How soon it says so
			// is measured from the signal, so a busy machine may need several
			// attempts.
			const attempts, bound = 5, 10 * time.Millisecond
			for i := range attempts {
				took := stopHolder(t, s, rival, r, fmt.Sprintf("stopped/%s/%d", r, i))
				if took <= bound {
					return
				}
			}
			t.Errorf("no holder knew within %s of SIGCONT in %d attempts", bound, attempts)
		})
	}
}

// stopHolder returns how long after SIGCONT the holder knew.
func stopHolder(t *testing.T, s *store, rival *holdfast.Client, r role, name string) time.Duration {
	t.Helper()
	h := traffic.Start(t, traffic.Job{Job: string(r), Store: s.server.URL, Name: name})
	h.Begin()
	var held, report holderReport
	h.Next(&held)
	h.Signal(syscall.SIGSTOP)
	stopped := time.Now()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := rival.Acquire(ctx, name, nil)
	if err != nil {
		t.Fatalf("the rival waits in vain for a stopped holder's lock: %v", err)
	}
	waited := time.Since(stopped)
	if lease.Token() <= held.Token {
		t.Errorf("token of the rival %d, of the stopped holder %d", lease.Token(), held.Token)
	}
	time.Sleep(time.Until(stopped.Add(2 * stoppedTTL))) // the pause under test
	woken := time.Now()
	h.Signal(syscall.SIGCONT)
	h.Next(&report)
	took := report.At.Sub(woken.Round(0))
	t.Logf("stopped for %s, the rival had the lock after %s, the holder knew %s after SIGCONT", woken.Sub(stopped), waited, took)
	if report.Valid {
		t.Error("the first Valid after the pause is true")
	}
	if !report.Lost {
		t.Error("the context's cause is not ErrLost")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return took
}
