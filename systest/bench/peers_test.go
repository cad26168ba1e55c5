package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// TestMain runs the tests, or this process as a crew or as a member of etcd.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == crewRole || os.Args[1] == etcdRole || os.Args[1] == etcdNoFsyncRole) {
		if err := begin(os.Args[1:], append(peer.All(), openDoorPeer())); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// shortest is the length of a trial whose figures do not matter.
const shortest = 20 * time.Millisecond

// trialOf returns a trial of a peer with a new name, because a waiter that gives up may leave a
// lock behind.
func trialOf(t *testing.T, p peer.Peer, s store, length time.Duration) *trial {
	t.Helper()
	tr := &trial{peer: p, store: s, name: rand.Text(), length: length, counts: p.Name == own, dir: t.TempDir()}
	t.Cleanup(func() {
		if err := tr.close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// TestPeersLock checks that each peer acquires free locks. It also checks that the workers of peers
// that wait exclude each other and all have turns, in one process and in two.
func TestPeersLock(t *testing.T) {
	l := new(life)
	t.Cleanup(l.end)
	stores := &inventory{life: l, running: map[peer.Store]store{}}
	for _, p := range peer.All() {
		t.Run(p.Name, func(t *testing.T) {
			store, err := stores.store(p.Store)
			if err != nil {
				t.Fatal(err)
			}
			if p.Can&(peer.Takes|peer.TakesDurably|peer.Spreads) != 0 {
				testPairs(t, trialOf(t, p, store, shortest))
			}
			if p.Can&(peer.Waits|peer.WaitsDurably) != 0 {
				testTurns(t, handOff(3, time.Millisecond), p, store)
				testTurns(t, handOffCrews(2, 2, 0), p, store)
				testKept(t, trialOf(t, p, store, shortest))
			}
		})
	}
}

func testPairs(t *testing.T, tr *trial) {
	t.Helper()
	client, err := tr.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := pair(t.Context(), client, "a free name"); err != nil {
			t.Error(err)
		}
	}
}

// testTurns runs w with longer and longer samples, because some peers pause for long or wait for a
// disk.
func testTurns(t *testing.T, w workload, p peer.Peer, store store) {
	t.Helper()
	for length := shortest; ; length *= 4 {
		s, err := w.run(t.Context(), trialOf(t, p, store, length))
		if errors.Is(err, errIdle) && length < time.Minute {
			continue
		}
		if err != nil || s["turns"] == 0 {
			t.Errorf("%s: %v, %v", w.name, s, err)
		}
		return
	}
}

// testKept checks that a lock is kept after the context of the wait for it ended.
func testKept(t *testing.T, tr *trial) {
	t.Helper()
	client, err := tr.open(t.Context())
	if err == nil {
		err = tr.prepare(t.Context(), client, "kept")
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	held, err := client.Wait(ctx, "kept")
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), shortest)
	defer cancel()
	if _, err := client.Wait(ctx, "kept"); err == nil {
		t.Error("two hold it: it was given back when its context ended")
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// An openDoor is a peer that excludes no one.
type openDoor struct{}

func (openDoor) Try(context.Context, string) (peer.Held, error)  { return openDoor{}, nil }
func (openDoor) Wait(context.Context, string) (peer.Held, error) { return openDoor{}, nil }
func (openDoor) Release(context.Context) error                   { return nil }
func (openDoor) Close() error                                    { return nil }

func openDoorPeer() peer.Peer {
	return peer.Peer{Name: "open door", Can: peer.Waits, Open: func(context.Context, string, time.Duration) (peer.Client, error) {
		return openDoor{}, nil
	}}
}

// A fakeStore is a store for peers that do not use it.
type fakeStore struct{ store }

func (fakeStore) addr() string                { return "" }
func (fakeStore) clear() error                { return nil }
func (fakeStore) cpu() (time.Duration, error) { return 0, nil }
func (fakeStore) scripts() (scripts, error)   { return scripts{}, nil }

// TestOverlapIsSeen checks that a peer without exclusion is found out, even if two holders are in
// different processes.
func TestOverlapIsSeen(t *testing.T) {
	for _, w := range []workload{handOff(2, time.Millisecond), handOffCrews(2, 1, time.Millisecond)} {
		s, err := w.run(t.Context(), trialOf(t, openDoorPeer(), fakeStore{}, shortest))
		if !errors.Is(err, errOverlap) {
			t.Errorf("%s: got %v, %v, want %v", w.name, s, err, errOverlap)
		}
	}
}

// TestBatonGoesRound checks the floor of hand-offs. All workers but one wait, each on its own
// connection, and each hands the baton to another, so that all have about equally many turns.
func TestBatonGoesRound(t *testing.T) {
	const workers = 8
	l := new(life)
	t.Cleanup(l.end)
	s, err := startStore(l, peer.Redis)
	if err != nil {
		t.Fatal(err)
	}
	tr := trialOf(t, peer.Baton(), s, shortest)
	client, err := tr.open(t.Context())
	if err == nil {
		err = tr.prepare(t.Context(), client, tr.name)
	}
	if err != nil {
		t.Fatal(err)
	}
	var d door
	var blocked float64
	turns, err := shift{Name: tr.name, Workers: workers, Work: time.Millisecond, WarmUp: 20 * time.Millisecond, Length: 200 * time.Millisecond}.do(
		t.Context(), client, &d, 1, marks{begin: unmarked.begin, end: func() error {
			for range 20 {
				info, err := s.(*redisStore).server.Do("INFO", "clients")
				if err != nil {
					return err
				}
				text, _ := infoField(info, "blocked_clients")
				blocked = max(blocked, infoPart("n="+text, "n"))
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if blocked != workers-1 {
		t.Errorf("%v are blocked in BLPOP at once, want %d", blocked, workers-1)
	}
	if n := sum(turns); n < workers || d.passed.Load() != n || report.Jain(turns) < 0.9 {
		t.Errorf("turns %v, of which %d came from another worker", turns, d.passed.Load())
	}
}

// TestClusterCounts checks that the figures of a Redis Cluster are the sums of its masters'
// figures.
func TestClusterCounts(t *testing.T) {
	l := new(life)
	t.Cleanup(l.end)
	c := startCluster(l)
	client, err := trialOf(t, peer.HoldfastCluster(), c, shortest).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const pairs = 30 // each of them two scripts
	for i := range pairs {
		if err := pair(t.Context(), client, oneOf("name", int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.scripts()
	if err != nil || all.calls < 2*pairs {
		t.Errorf("%d calls of scripts, %v, want %d at least", all.calls, err, 2*pairs)
	}
	for _, m := range c {
		if one, err := m.scripts(); err != nil || one.calls == 0 || one.calls > all.calls/2 {
			t.Errorf("a master has had %d of %d calls, %v", one.calls, all.calls, err)
		}
	}
}
