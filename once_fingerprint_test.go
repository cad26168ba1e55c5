package holdfast_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// prints are pairs of fingerprints, of the earlier and the later request.
var prints = []struct {
	earlier, later string
	differ         bool
}{
	{"a", "a", false},
	{"a", "b", true},
	{"a", "A", true},
	{"a", "a ", true},
	{"a", "", false}, // who gives none is not compared
	{"", "b", false},
	{"", "", false},
}

func TestOnceFingerprintOfDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		for _, p := range prints {
			once(t, c, &holdfast.OnceOptions{Fingerprint: p.earlier}, returns("kept"))
			for _, await := range []bool{false, true} {
				r, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Fingerprint: p.later, Await: await}, mustNotRun(t).fn)
				checkFingerprint(t, p.differ, r, err)
			}
			c.OnceForget(t.Context(), "k")
		}
	})
}

func checkFingerprint(t testing.TB, differ bool, r holdfast.OnceResult, err error) {
	t.Helper()
	switch {
	case !differ:
		if err != nil || !r.Replayed || string(r.Value) != "kept" {
			t.Errorf("%+v, %v; want the result", r, err)
		}
	default:
		wantErr(t, err, holdfast.ErrFingerprint)
		if r.Value != nil || err.Error() != `holdfast: once "k": the key was used for another request` {
			t.Errorf("%+v, %v; want no result", r, err)
		}
	}
}

func TestOnceFingerprintOfWorkInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, other := newClient(t, engine, nil), newClient(t, engine, nil)
		for _, p := range prints {
			once(t, c, &holdfast.OnceOptions{Fingerprint: p.earlier}, newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
				start := time.Now()
				want := holdfast.ErrInProgress
				if p.differ {
					want = holdfast.ErrFingerprint
				}
				_, err := other.Once(bounded(t), "k", &holdfast.OnceOptions{Fingerprint: p.later}, mustNotRun(t).fn)
				wantErr(t, err, want)
				if p.differ {
					// There is no point in waiting for another request's result.
					_, err = other.Once(bounded(t), "k", &holdfast.OnceOptions{Fingerprint: p.later, Await: true}, mustNotRun(t).fn)
					wantErr(t, err, want)
				}
				if took := time.Since(start); took != 0 {
					t.Errorf("answered after %s, want at once", took)
				}
				synctest.Wait()
				if lock, _ := engine.Engine.Inspect(t.Context(), "k"); len(lock.Queue) != 0 {
					t.Error("a place stayed behind")
				}
				return nil, nil
			}))
			c.OnceForget(t.Context(), "k")
		}
	})
}

// The work that a waiter waits for fails, and another request takes over.
func TestOnceFingerprintChangesWhileWaiting(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, engine, nil)
			release := foreign(t, engine, "k", time.Hour) // whose request is not known
			go c.Once(t.Context(), "k", &holdfast.OnceOptions{Fingerprint: "b", Await: true}, func(context.Context, *holdfast.Lease) ([]byte, error) {
				time.Sleep(time.Second)
				if fails {
					return nil, errLink
				}
				return []byte("kept"), nil
			})
			synctest.Wait()
			time.AfterFunc(time.Second, release)
			j := returns("mine")
			r, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Fingerprint: "a", Await: true}, j.fn)
			if fails {
				if err != nil || r.Replayed || j.runs != 1 {
					t.Errorf("%+v, %v; want a run", r, err)
				}
				return
			}
			checkFingerprint(t, true, r, err)
			if j.runs != 0 {
				t.Error("the work ran, too")
			}
		})
	}
}
