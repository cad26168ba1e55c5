// Package demo simulates processes that use locks, for holdfast serve --demo. Their work is
// made up, but each has a client of its own on one real store.
//
// # How to read it
//
//	demo.go    the fleet and its processes
//	cast.go    the processes and their work
//	rounds.go  rounds that are more than work under locks
//	past.go    the made-up history
package demo

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// Notice is shown on the page of a demo.
const Notice = "This is a demo: the locks are real, and the fleet that takes them is made up. All of it is gone when the server stops."

// A Fleet is some dozens of processes. Use Start to make one.
type Fleet struct {
	engine driver.Engine
	stop   context.CancelFunc
	all    sync.WaitGroup
}

// Start starts a fleet on engine, and on api, the server of that engine. It runs until Stop is
// called. The same seed gives the same names, in the same order for each process.
func Start(engine driver.Engine, api http.Handler, seed uint64) *Fleet {
	f := &Fleet{engine: engine}
	ctx, stop := context.WithCancel(context.Background()) // Stop ends it
	f.stop = stop
	n := uint64(0)
	for _, role := range cast() {
		for host := range strings.FieldsSeq(role.hosts) {
			r := rand.New(rand.NewPCG(seed, n)) //nolint:gosec // it is a demo that is the same each time
			f.all.Go(func() { f.play(ctx, &process{role: role, host: host, api: api, rand: r}) })
			n++
		}
	}
	return f
}

// Stop ends the fleet, and returns when it has released its locks.
func (f *Fleet) Stop() {
	f.stop()
	f.all.Wait()
}

// A role is what a process does on each of some hosts: one round after the other, all the same.
type role struct {
	hosts, program, user string
	person               bool
	round                round
}

// A round is what a process does again and again.
type round func(ctx context.Context, p *process) error

// A process is one of the fleet.
type process struct {
	*holdfast.Client
	role
	host  string
	api   http.Handler // the server, for requests over HTTP
	rand  *rand.Rand   // its own, so that its choices do not depend on the timing of others
	count int          // of rounds so far
}

// least is the shortest time of a round, in seconds, so that a round that fails at once is not
// repeated at once.
const least = 0.2

// play runs the rounds of a process until ctx ends.
func (f *Fleet) play(ctx context.Context, p *process) {
	who := holdfast.Holder{Host: p.host, User: p.user, Person: p.person}
	if !p.person {
		who.Program, who.PID = p.program, 400+p.rand.IntN(32_000)
	}
	var err error
	p.Client, err = holdfast.New(f.engine, &holdfast.Options{
		TTL: 10 * time.Second, Holder: who, Logger: slog.New(slog.DiscardHandler), // losses are part of the play
		SharedEngine: true,
	})
	if err != nil {
		return // cannot happen: the engine supports everything
	}
	defer func() { _ = p.Close() }() // leases that remain end with their TTL, and with the store
	if !p.person {                   // spreads the processes out, with persons first
		_ = p.pause(ctx, least, 1)
	}
	for ; ctx.Err() == nil; p.count++ {
		began := time.Now()
		if p.round(ctx, p) != nil { // another client has the lock or broke it, which is part of the demo
			_ = p.pause(ctx, 1, 3)
		}
		left := least - time.Since(began).Seconds()
		_ = p.pause(ctx, left, left)
	}
}

// pause waits for a random time, in seconds, or until ctx ends. It returns the cause of the end
// of ctx, or nil.
func (p *process) pause(ctx context.Context, from, to float64) error {
	if to > from {
		from += p.rand.Float64() * (to - from)
	}
	if from > 0 {
		select {
		case <-time.After(time.Duration(from * float64(time.Second))):
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// one returns a random one of several texts.
func (p *process) one(of ...string) string { return of[p.rand.IntN(len(of))] }
