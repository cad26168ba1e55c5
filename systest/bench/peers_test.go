package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
)

// TestMain lets this program be a crew, and a member of etcd.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == crewRole || os.Args[1] == etcdRole) {
		if err := begin(os.Args[1:]); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestPeersLock: each peer takes free locks, and those that wait exclude one
// another and all have turns, in one process and in two.
func TestPeersLock(t *testing.T) {
	l := new(life)
	t.Cleanup(l.end)
	stores := &inventory{life: l}
	for _, p := range peer.All() {
		t.Run(p.Name, func(t *testing.T) {
			store, err := stores.store(p.Store)
			if err != nil {
				t.Fatal(err)
			}
			trial := &trial{peer: p, store: store, name: "a name", length: 100 * time.Millisecond}
			defer func() {
				if err := trial.close(); err != nil {
					t.Error(err)
				}
			}()
			client, err := trial.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if p.Can&peer.Takes != 0 {
				testPairs(t, client)
			}
			if p.Can&peer.Waits != 0 {
				testTurns(t, trial, client)
			}
		})
	}
}

func testPairs(t *testing.T, client peer.Client) {
	t.Helper()
	for range 3 {
		if err := pair(t.Context(), client, "a free name"); err != nil {
			t.Error(err)
		}
	}
}

func testTurns(t *testing.T, tr *trial, client peer.Client) {
	t.Helper()
	if err := tr.prepare(t.Context(), client, tr.name); err != nil {
		t.Fatal(err)
	}
	s := shift{Name: tr.name, Workers: 3, Work: time.Millisecond, Length: tr.length}
	if turns, _, err := s.do(t.Context(), client); err != nil || sum(turns) == 0 {
		t.Errorf("turns %v, %v", turns, err)
	}
	if got, err := s.inCrews(t.Context(), tr, 2); err != nil || got["turns"] == 0 {
		t.Errorf("in two processes: %v, %v", got, err)
	}
}

// An open door is a peer that excludes nobody.
type openDoor struct{}

func (openDoor) Try(context.Context, string) (peer.Held, error)  { return openDoor{}, nil }
func (openDoor) Wait(context.Context, string) (peer.Held, error) { return openDoor{}, nil }
func (openDoor) Release(context.Context) error                   { return nil }
func (openDoor) Close() error                                    { return nil }

// TestOverlapIsSeen: a peer that excludes nobody is not the fastest.
func TestOverlapIsSeen(t *testing.T) {
	s := shift{Workers: 2, Work: time.Millisecond, Length: 100 * time.Millisecond}
	if _, _, err := s.do(t.Context(), openDoor{}); !errors.Is(err, errOverlap) {
		t.Errorf("got %v, want %v", err, errOverlap)
	}
}
