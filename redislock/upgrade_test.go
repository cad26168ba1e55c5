package redislock

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// A version is a client that takes a lock, and gives it back.
type version interface {
	// acquire asks for a lock, or repeats the request.
	acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error)
	// release gives the lock back, or the place up.
	release(ctx context.Context, req driver.AcquireRequest) error
}

// present is this version.
type present struct{ *rediscore.Engine }

func (p present) acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	return p.Acquire(ctx, req)
}

func (p present) release(ctx context.Context, req driver.AcquireRequest) error {
	return p.Release(ctx, driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID, Cancel: req.Queue})
}

// A laterConn carries the scripts of this version with the number of a later
// layout.
type laterConn struct{ rediscore.Conn }

var errNoScript = rediscore.ReplyError("NOSCRIPT this one is always sent in full")

func (c laterConn) EvalSHA(context.Context, string, []string, []string) (any, error) {
	return nil, errNoScript
}

func (c laterConn) EvalInts(_ context.Context, _ string, _, _ []string, to []int64) ([]int64, error) {
	return to, errNoScript
}

// renumber writes another number where a script has that of the layout.
var renumber = strings.NewReplacer("'3 ", "'4 ", "'^3 ", "'^4 ", "'3'", "'4'")

func (c laterConn) Do(ctx context.Context, cmd rediscore.Command) (any, error) {
	if cmd.Words[0] == "EVAL" {
		cmd.Words = slices.Clone(cmd.Words)
		cmd.Words[1] = renumber.Replace(cmd.Words[1])
	}
	return c.Conn.Do(ctx, cmd)
}

// former is the version of an earlier layout, with its scripts.
type former struct {
	conn    rediscore.Conn
	scripts []string // acquire and release have the first ones in front
	layout  string
}

//go:embed testdata
var formerly embed.FS

func (f former) run(ctx context.Context, script string, name string, id driver.LeaseID, args ...string) (any, error) {
	text := ""
	for _, part := range append(f.scripts, script) {
		b, err := formerly.ReadFile("testdata/" + f.layout + "/" + part + ".lua")
		if err != nil {
			return nil, err
		}
		text += string(b)
	}
	k := keyspace{}
	keys := []string{name}
	for _, kind := range []string{kindFence, kindHolders, kindQueue, kindWaiters, kindDetail, kindRecord} {
		keys = append(keys, k.companion(kind, name, name))
	}
	keys = append(keys, k.tombstone(name, id))
	args = append([]string{"86400000", "holdfast:inbox:"}, args...)
	return f.conn.Do(ctx, rediscore.Command{Words: []string{"EVAL", text, strconv.Itoa(len(keys))}, Keys: keys, Args: args})
}

func (f former) acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	wait := "0"
	if req.Queue {
		wait = ms(req.WaiterTTL)
	}
	reply, err := f.run(ctx, "acquire", req.Name, req.LeaseID, "3600000000", wait, "0", "",
		string(req.LeaseID), strconv.Itoa(int(req.Mode)), "0", "0", ms(req.TTL), "0", "{}")
	items, _ := reply.([]any)
	if err != nil || len(items) < 2 {
		return driver.AcquireReply{}, fmt.Errorf("%s: %v, %w", f.layout, reply, errors.Join(err))
	}
	if items[0] == int64(1) {
		return driver.AcquireReply{Outcome: driver.Granted, Token: uint64(items[1].(int64))}, nil
	}
	return driver.AcquireReply{Outcome: driver.Held}, nil
}

func (f former) release(ctx context.Context, req driver.AcquireRequest) error {
	_, err := f.run(ctx, "release", req.Name, req.LeaseID, string(req.LeaseID), "0", "60000")
	return err
}

// A span is for how long a client may have trusted a lease.
type span struct {
	kind     string
	from, to time.Time
	token    uint64
}

// A rollout is several versions that use the same names.
type rollout struct {
	mu      sync.Mutex
	spans   map[string][]span // by name
	refused map[string]int    // by kind
}

const rolloutTTL = 300 * time.Millisecond

// take is one attempt to have a lock, in a version.
func (r *rollout) take(t *testing.T, kind string, v version, req driver.AcquireRequest) {
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
			if again := time.Now(); req.Mode == driver.Exclusive {
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

// refuse notes a refusal, which must say why.
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

// check fails t if two had a lock at a time, or tokens did not grow.
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

// TestRollingUpgrade: clients of this layout, of those before and of the one behind
// it use the same names. No two have a lock at a time, tokens grow over all
// of them, every refusal says why, and whoever is left can have every name.
// INVARIANT I1, I2.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	conn := func() rediscore.Conn { return newConn(plain(t, server), nil) }
	later := rediscore.New(laterConn{conn()}, nil)
	t.Cleanup(func() { _ = later.Close() })
	versions := map[string]version{
		"layout 1": former{conn(), []string{"common"}, "layout1"}, "layout 2": former{conn(), nil, "layout2"},
		"layout 3": present{e.Engine}, "layout 4": present{later},
	}
	for _, kinds := range [][]string{{"layout 3", "layout 4"}, {"layout 2", "layout 3"}, {"layout 1", "layout 2", "layout 3", "layout 4"}} {
		r := &rollout{spans: map[string][]span{}, refused: map[string]int{}}
		names := []string{fmt.Sprint(len(kinds), kinds[0], "a"), fmt.Sprint(len(kinds), kinds[0], "b")}
		var wg sync.WaitGroup
		began := time.Now()
		for _, kind := range kinds {
			for i := range 3 {
				wg.Go(func() {
					for time.Since(began) < 600*time.Millisecond || !r.met() && time.Since(began) < 20*time.Second {
						req := drivertest.Request(names[rand.IntN(len(names))], rolloutTTL)
						if i > 0 {
							req.Queue, req.WaiterTTL = true, rolloutTTL
						}
						r.take(t, kind, versions[kind], req)
						time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
					}
				})
			}
		}
		wg.Wait()
		r.check(t)
		if !r.met() {
			t.Errorf("%v: refused %v, granted %v: they did not meet", kinds, r.refused, r.spans)
		}
		for _, kind := range kinds {
			for _, name := range names {
				req := drivertest.Request(name, rolloutTTL)
				drivertest.Eventually(t, kind+" has "+name, func() bool {
					reply, err := versions[kind].acquire(t.Context(), req)
					return err == nil && reply.Outcome == driver.Granted
				})
				if err := versions[kind].release(t.Context(), req); err != nil {
					t.Errorf("release by %s: %v", kind, err)
				}
			}
		}
	}
}
