package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
)

// crewRole is the argument that makes this program a crew: a process with one client, which does
// the job in the next argument. It ends with its standard input.
const crewRole = "crew"

// A crewJob is the input of a crew.
type crewJob struct {
	Peer, Addr string
	TTL        time.Duration

	Hold int // number of locks to hold until the end; their names begin with Shift.Name
	// or
	Shift shift
	First int64  // number of the first worker
	Door  string // file of the door, which all crews share
}

// A crewStatus is the message of a crew when it is ready, and then after each line that
// it reads.
type crewStatus struct {
	CPU        time.Duration // used so far; for a shift, while it was counted
	Memory     int64         // growth in bytes while it holds locks
	Goroutines int           // growth while it holds locks
	Turns      []int64       // of a shift
}

// beCrew is the main function of a crew.
func beCrew(text string, peers []peer.Peer) error {
	var job crewJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	i := slices.IndexFunc(peers, func(p peer.Peer) bool { return p.Name == job.Peer })
	if i < 0 {
		return fmt.Errorf("no peer %q", job.Peer)
	}
	ctx := context.Background()
	client, err := peers[i].Open(ctx, job.Addr, job.TTL)
	if err != nil {
		return err
	}
	begin := job.work
	if job.Hold > 0 {
		begin = job.hold
	}
	do, status, err := begin(ctx, client)
	out, in := json.NewEncoder(os.Stdout), bufio.NewReader(os.Stdin)
	orders := make(chan struct{})
	go func() { // a crew ends with its standard input
		for {
			if _, err := in.ReadString('\n'); err != nil {
				os.Exit(1)
			}
			orders <- struct{}{}
		}
	}()
	for {
		if err == nil {
			err = out.Encode(status)
		}
		if err != nil {
			return err
		}
		<-orders
		status, err = do()
	}
}

// hold takes locks, and reports their cost while they are held.
func (j crewJob) hold(ctx context.Context, client peer.Client) (do func() (crewStatus, error), ready crewStatus, err error) {
	before, goroutines := heap(), runtime.NumGoroutine()
	if _, err := take(ctx, client, j.Shift.Name, j.Hold); err != nil {
		return nil, ready, err
	}
	do = func() (s crewStatus, err error) {
		s.CPU, err = ownCPU()
		return s, err
	}
	return do, crewStatus{Memory: int64(heap()) - int64(before), Goroutines: runtime.NumGoroutine() - goroutines}, nil
}

// work does a shift for each line that it reads.
func (j crewJob) work(ctx context.Context, client peer.Client) (do func() (crewStatus, error), ready crewStatus, err error) {
	d, err := sharedDoor(j.Door)
	do = func() (s crewStatus, err error) {
		var before time.Duration
		m := marks{
			begin: func() (err error) { before, err = ownCPU(); return err },
			end:   func() (err error) { s.CPU, err = ownCPU(); return err },
		}
		s.Turns, err = j.Shift.do(ctx, client, d, j.First, m)
		s.CPU -= before
		return s, err
	}
	return do, ready, err
}

// A crew is a crew that this process started.
type crew = child[crewStatus]

// crew starts a crew, which ends with the trial, and returns its first message.
func (t *trial) crew(ctx context.Context, job crewJob) (*crew, crewStatus, error) {
	job.Peer, job.Addr, job.TTL = t.peer.Name, t.store.addr(), t.ttl
	text, err := json.Marshal(job)
	if err != nil {
		return nil, crewStatus{}, err
	}
	c, err := startChild[crewStatus](ctx, crewRole, string(text))
	if err != nil {
		return nil, crewStatus{}, err
	}
	t.crews = append(t.crews, c)
	status, err := c.next()
	return c, status, err
}
