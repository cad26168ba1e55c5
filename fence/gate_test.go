package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
)

var _ fence.Claim = (*holdfast.Lease)(nil)

func TestRule(t *testing.T) {
	a, b := lockinfo.NewLeaseID(), lockinfo.NewLeaseID()
	for name, verb := range map[string]func(*fence.Gate, fence.Claim) error{
		"Advance": func(g *fence.Gate, c fence.Claim) error { return g.Advance("r", c) },
		"Check":   func(g *fence.Gate, c fence.Claim) error { return g.Check("r", c) },
		"Marks": func(g *fence.Gate, c fence.Claim) error {
			return g.Marks().Check(context.Background(), "r", c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, nil)
			for _, c := range []struct {
				token   uint64
				id      holdfast.LeaseID
				current uint64 // the token in the refusal; 0 if accepted
			}{
				{33, a, 0}, {33, a, 0}, {33, b, 33}, {33, "", 33}, {32, a, 33},
				{34, b, 0}, {33, a, 34}, {34, a, 34}, {34, b, 0},
				{35, "", 0}, {35, "", 0}, {35, a, 35}, {fence.MaxToken, a, 0}, {fence.MaxToken - 1, b, fence.MaxToken},
			} {
				err := verb(g, fence.NewClaim(c.token, c.id))
				if c.current == 0 && err != nil {
					t.Errorf("%d of %.4q: %v, want it accepted", c.token, c.id, err)
				}
				var stale *fence.StaleError
				if c.current != 0 && (!errors.As(err, &stale) || !errors.Is(err, fence.ErrStale) || *stale != fence.StaleError{Resource: "r", Token: c.token, Current: c.current}) {
					t.Errorf("%d of %.4q: %v, want it stale after %d", c.token, c.id, err, c.current)
				}
			}
		})
	}
}

func TestStaleErrorText(t *testing.T) {
	for want, err := range map[string]fence.StaleError{
		`fence: resource "r": stale fencing token 33: a holder with 34 has been here`:               {Resource: "r", Token: 33, Current: 34},
		`fence: resource "r": stale fencing token 33: another lease came first with the same token`: {Resource: "r", Token: 33, Current: 33},
		`fence: resource "r": stale fencing token 33: a later holder has been here`:                 {Resource: "r", Token: 33},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err.Error(), want)
		}
	}
}

func TestGateRefusesBadClaims(t *testing.T) {
	g, id := newGate(t, &fence.GateOptions{MaxResources: 1}), lockinfo.NewLeaseID()
	for _, c := range []struct {
		resource string
		claim    fence.Claim
	}{
		{"r", nil}, {"r", fence.NewClaim(0, id)}, {"r", fence.NewClaim(fence.MaxToken+1, id)}, {"r", fence.NewClaim(1, "worker-1")},
		{"", fence.NewClaim(1, id)}, {"a\nb", fence.NewClaim(1, id)}, {strings.Repeat("r", 513), fence.NewClaim(1, id)},
	} {
		if err := g.Advance(c.resource, c.claim); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%.8q, %v: %v, want ErrInvalid", c.resource, c.claim, err)
		}
	}
	if err := g.Advance("room for one", fence.NewClaim(1, id)); err != nil {
		t.Errorf("a bad claim took room: %v", err)
	}
}

func TestGateIsBoundedAndForgetsNothing(t *testing.T) {
	g := newGate(t, &fence.GateOptions{MaxResources: 2})
	for _, r := range []string{"a", "b"} {
		if err := g.Advance(r, fence.NewClaim(9, "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Advance("c", fence.NewClaim(9, "")); !errors.Is(err, fence.ErrFull) {
		t.Errorf("one too many: %v, want ErrFull", err)
	}
	for _, r := range []string{"a", "b"} {
		if err := g.Advance(r, fence.NewClaim(8, "")); !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v, want ErrStale", r, err)
		}
	}
	g.Forget("a")
	g.Forget("never seen")
	if err := g.Advance("c", fence.NewClaim(1, "")); err != nil {
		t.Errorf("after Forget: %v", err)
	}
}

// TestWriteKeepsOthersOut checks that the write of an accepted holder ends before the next holder
// advances, and that Forget waits, too.
func TestWriteKeepsOthersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, nil)
		writing, goOn := make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		var order []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, s)
		}
		errWrite := errors.New("disk full")
		go func() {
			err := g.Write("r", fence.NewClaim(33, ""), func() error {
				close(writing)
				<-goOn
				note("write 33")
				return errWrite
			})
			if err != errWrite {
				t.Errorf("got %v, want the error of the write as it is", err)
			}
		}()
		<-writing
		for range 2 {
			go func() {
				if err := g.Advance("r", fence.NewClaim(34, "")); err != nil {
					t.Error(err)
				}
				note("advance 34")
			}()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := g.Marks().Advance(ctx, "r", fence.NewClaim(34, "")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while a write runs: %v, want the context's error", err)
		}
		if err := g.Advance("other", fence.NewClaim(1, "")); err != nil {
			t.Errorf("another resource: %v", err)
		}
		close(goOn)
		synctest.Wait()
		if got := fmt.Sprint(order); got != "[write 33 advance 34 advance 34]" {
			t.Errorf("got %s, want the write first", got)
		}
	})
}

func TestWriteThatPanicsGivesTheTurnBack(t *testing.T) {
	g := newGate(t, nil)
	func() {
		defer func() { _ = recover() }()
		_ = g.Write("r", fence.NewClaim(1, ""), func() error { panic("write") })
	}()
	if err := g.Advance("r", fence.NewClaim(2, "")); err != nil {
		t.Error(err)
	}
}

// TestForgetNeverLetsTwoWritesRun runs writers and Forget for one name at once.
func TestForgetNeverLetsTwoWritesRun(t *testing.T) {
	g := newGate(t, &fence.GateOptions{MaxResources: 1})
	n := 0 // unguarded: the race detector watches
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if err := g.Write("r", fence.NewClaim(7, ""), func() error { n++; return nil }); err != nil {
					t.Error(err)
				}
				g.Forget("r")
			}
		})
	}
	wg.Wait()
	if n != 8*500 {
		t.Errorf("%d writes are there of %d", n, 8*500)
	}
}

// TestGateSequence checks 64 holders with random tokens, in any order.
func TestGateSequence(t *testing.T) {
	ids := [2]holdfast.LeaseID{lockinfo.NewLeaseID(), lockinfo.NewLeaseID()}
	var mu sync.Mutex
	events := map[observe.Kind]int{}
	g := newGate(t, &fence.GateOptions{Observer: func(e observe.Event) {
		mu.Lock()
		defer mu.Unlock()
		events[e.Kind]++
		if e.Current < e.Token || (e.Kind == observe.ClaimAccepted && e.Current != e.Token) {
			t.Errorf("event %+v makes no sense", e)
		}
	}})
	type entry struct {
		token uint64
		id    holdfast.LeaseID
	}
	var journal []entry
	var refused int
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for round := range 30 {
				e := entry{uint64(round + 1 + rand.IntN(6)), ids[rand.IntN(2)]}
				err := g.Write("r", fence.NewClaim(e.token, e.id), func() error { journal = append(journal, e); return nil })
				if err != nil {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	g.Told()
	for i, e := range journal[1:] {
		if last := journal[i]; e.token < last.token || (e.token == last.token && e.id != last.id) {
			t.Errorf("%d of %.4q was accepted after %d of %.4q", e.token, e.id, last.token, last.id)
		}
	}
	if len(journal) < 5 || refused < 5 || events[observe.ClaimAccepted] != len(journal) || events[observe.ClaimRefused] != refused {
		t.Errorf("%d accepted and %d refused, and events %v", len(journal), refused, events)
	}
}

// newGate returns a gate without any mark.
func newGate(t testing.TB, opts *fence.GateOptions) *fence.Gate {
	t.Helper()
	g, err := fence.NewGate(opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestNewGateRefusesBadOptions(t *testing.T) {
	if g, err := fence.NewGate(&fence.GateOptions{MaxResources: -1}); g != nil || !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("%v, %v; want ErrInvalid", g, err)
	}
}
