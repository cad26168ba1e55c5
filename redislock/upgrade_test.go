package redislock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// A present is a client of one version.
type present struct{ *rediscore.Engine }

// acquire acquires a lock, or repeats the request.
func (p present) acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	return p.Acquire(ctx, req)
}

// release releases the lock, or gives up the place.
func (p present) release(ctx context.Context, req driver.AcquireRequest) error {
	return p.Release(ctx, driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID, Cancel: req.Queue})
}

// A laterConn sends the scripts of this version with the number of a later layout.
type laterConn struct{ rediscore.Conn }

var errNoScript = rediscore.ReplyError("NOSCRIPT this one is always sent in full")

func (c laterConn) EvalSHA(context.Context, string, []string, []string) (any, error) {
	return nil, errNoScript
}

func (c laterConn) EvalInts(_ context.Context, _ string, _, _ []string, to []int64) ([]int64, error) {
	return to, errNoScript
}

// renumber replaces the number of the layout in a script.
var renumber = strings.NewReplacer("'1 ", "'2 ", "'^1 ", "'^2 ", "'1'", "'2'")

func (c laterConn) Do(ctx context.Context, cmd rediscore.Command) (any, error) {
	if cmd.Words[0] == "EVAL" {
		cmd.Words = slices.Clone(cmd.Words)
		cmd.Words[1] = renumber.Replace(cmd.Words[1])
	}
	return c.Conn.Do(ctx, cmd)
}

// A span is the time during which a client may have trusted a lease.
type span struct {
	kind     string
	from, to time.Time
	token    uint64
}

// A rollout has several versions that use the same names.
type rollout struct {
	mu      sync.Mutex
	spans   map[string][]span // by name
	refused map[string]int    // by kind
}

const rolloutTTL = 300 * time.Millisecond

// take is one attempt of a version to acquire a lock.
func (r *rollout) take(t *testing.T, kind string, v present, req driver.AcquireRequest) {
	var reply driver.AcquireReply
	var sent, got time.Time
	for limit := time.Now().Add(rolloutTTL); ; time.Sleep(time.Millisecond) {
		var err error
		sent = time.Now()
		reply, err = v.acquire(t.Context(), req)
		got = time.Now()
		if err != nil {
			r.refuse(t, kind, "acquire", err)
			return
		}
		if reply.Outcome == driver.Granted || !req.Queue || got.After(limit) {
			break
		}
	}
	if reply.Outcome == driver.Granted {
		for range rand.IntN(4) { // works, and renews
			time.Sleep(time.Millisecond)
			if again := time.Now(); req.Mode == lockinfo.Exclusive {
				if more, err := v.acquire(t.Context(), req); err == nil && more.Outcome == driver.Granted && more.Token == reply.Token {
					sent = again
				}
			}
		}
		end := time.Now()
		if trusted := sent.Add(rolloutTTL); trusted.Before(end) {
			end = trusted
		}
		r.mu.Lock()
		r.spans[req.Name] = append(r.spans[req.Name], span{kind, got, end, reply.Token})
		r.mu.Unlock()
	}
	if err := v.release(t.Context(), req); err != nil && !errors.Is(err, driver.ErrLost) {
		r.refuse(t, kind, "release", err)
	}
}

// refuse records a refusal, which must have the reason.
func (r *rollout) refuse(t *testing.T, kind, what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[kind]++
	if !errors.Is(err, rediscore.ErrLayout) || !strings.Contains(err.Error(), "LAYOUT ") {
		t.Errorf("%s by %s: %v", what, kind, err)
	}
}

// met reports whether at least two versions were granted locks, and one was refused.
func (r *rollout) met() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := map[string]bool{}
	for _, all := range r.spans {
		for _, s := range all {
			had[s.kind] = true
		}
	}
	return len(had) > 1 && len(r.refused) > 0
}

// check fails t if two versions held a lock at once, or tokens did not grow.
func (r *rollout) check(t *testing.T) {
	for name, all := range r.spans {
		slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
		for i := 1; i < len(all); i++ {
			if a, b := all[i-1], all[i]; a.to.After(b.from) || a.token >= b.token {
				t.Errorf("%s: %s had it until %v, with token %d, and %s from %v before that, with token %d",
					name, a.kind, a.to.Format(time.StampMicro), a.token, b.kind, a.to.Sub(b.from), b.token)
			}
		}
	}
}

// TestRollingUpgrade checks clients of this layout and of the next that use the same names. No two
// hold a lock at once, tokens grow over both, every refusal has the reason, and each client can
// acquire every name in the end.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	conn := func() rediscore.Conn { return newConn(plain(t, server), nil) }
	later := engineOnConn(t, laterConn{conn()})
	t.Cleanup(func() { _ = later.Close() })
	versions := map[string]present{"this layout": {e.Engine}, "the next": {later.Engine}}
	r := &rollout{spans: map[string][]span{}, refused: map[string]int{}}
	names := []string{"a", "b"}
	var wg sync.WaitGroup
	began := time.Now()
	for kind, version := range versions {
		for i := range 3 {
			wg.Go(func() {
				for time.Since(began) < 600*time.Millisecond || !r.met() && time.Since(began) < 20*time.Second {
					req := drivertest.Request(names[rand.IntN(len(names))], rolloutTTL)
					if i > 0 {
						req.Queue, req.WaiterTTL = true, rolloutTTL
					}
					r.take(t, kind, version, req)
					time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
				}
			})
		}
	}
	wg.Wait()
	r.check(t)
	if !r.met() {
		t.Errorf("refused %v, granted %v: they did not meet", r.refused, r.spans)
	}
	for kind, version := range versions {
		for _, name := range names {
			req := drivertest.Request(name, rolloutTTL)
			drivertest.Eventually(t, kind+" has "+name, func() bool {
				reply, err := version.acquire(t.Context(), req)
				return err == nil && reply.Outcome == driver.Granted
			})
			if err := version.release(t.Context(), req); err != nil {
				t.Errorf("release by %s: %v", kind, err)
			}
		}
	}
}
