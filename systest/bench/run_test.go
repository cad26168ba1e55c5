package main

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// contestants are peers that cannot lock: c lacks an ability, and d has default settings.
func contestants() []peer.Peer {
	return []peer.Peer{{Name: "a", Can: peer.Takes}, {Name: "b", Can: peer.Takes}, {Name: "c", Can: peer.Waits}, {Name: "d", Can: peer.Takes, Default: true}}
}

// TestRoundsAreInterleaved checks the order A B D A B D. A peer without the needed ability has no
// turn, and a peer that has failed twice has no more. Commands are counted in the first round only.
func TestRoundsAreInterleaved(t *testing.T) {
	b := &bench{rounds: 3, peers: contestants(), log: io.Discard, stores: &inventory{running: map[peer.Store]store{"": fakeStore{}}}}
	var order []string
	broken := errors.Join(errors.New("broken"), errors.New("in many goroutines"))
	w := workload{name: "w", needs: peer.Takes, metrics: []report.Metric{{Name: "m"}}}
	w.run = func(_ context.Context, tr *trial) (sample, error) {
		turn := tr.peer.Name
		if tr.counts {
			turn += "!"
		}
		order = append(order, turn)
		if tr.peer.Name == "b" {
			return nil, broken
		}
		return sample{"m": float64(len(order))}, nil
	}
	r, err := b.measure(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(order, " "), "a! b! d! a b d a d"; got != want {
		t.Errorf("the turns are %s, want %s", got, want)
	}
	for name, want := range map[string][]float64{"a": {1, 4, 7}, "b": nil, "d": {3, 6, 8}} {
		if got := r.Peer(name).Samples["m"]; !reflect.DeepEqual(got, want) {
			t.Errorf("samples of %s: got %v, want %v", name, got, want)
		}
	}
	if reason := r.Peer("b").Reason; reason != "failed in 2 rounds: broken" || r.Peer("c") != nil {
		t.Errorf("b: %q; c: %v", reason, r.Peer("c"))
	}
}

// TestOnlyTheBest checks that a workload can leave out peers with default settings.
func TestOnlyTheBest(t *testing.T) {
	b := &bench{peers: contestants()}
	for best, want := range map[bool]int{false: 3, true: 2} {
		w := workload{needs: peer.Takes, best: best, run: func(context.Context, *trial) (sample, error) { return nil, nil }}
		if r, err := b.measure(t.Context(), w); err != nil || len(r.Peers) != want {
			t.Errorf("only the best: %t: got %v, %v, want %d", best, r.Peers, err, want)
		}
	}
}

// TestGroups checks that a workload can measure peers with default settings apart from the others.
func TestGroups(t *testing.T) {
	c := &contest{able: contestants()}
	if got, want := c.groups(), [][]int{{0, 1, 2, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("together: got %v, want %v", got, want)
	}
	c.load.apart = true
	if got, want := c.groups(), [][]int{{0, 1, 2}, {3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("apart: got %v, want %v", got, want)
	}
}

// TestSideBySide checks that all peers begin before any has a round, and that a peer whose begin
// fails has no rounds.
func TestSideBySide(t *testing.T) {
	b := &bench{rounds: 2, log: io.Discard}
	for _, p := range contestants() {
		p.Store = peer.Redis
		b.peers = append(b.peers, p)
	}
	begun := make(chan string, 3)
	w := workload{name: "w", needs: peer.Takes, metrics: []report.Metric{{Name: "m"}}}
	w.begin = func(_ context.Context, tr *trial) (round, error) {
		begun <- tr.peer.Name
		if tr.peer.Name == "b" {
			return nil, errors.New("broken")
		}
		return func(context.Context) (sample, error) { return sample{"m": float64(len(begun))}, nil }, nil
	}
	r, err := b.measure(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]float64{"a": {3, 3}, "b": nil, "d": {3, 3}} {
		if got := r.Peer(name).Samples["m"]; !reflect.DeepEqual(got, want) {
			t.Errorf("samples of %s: got %v, want %v", name, got, want)
		}
	}
	if r.Peer("b").Reason != "broken" {
		t.Errorf("b: %q", r.Peer("b").Reason)
	}
}
