package main

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// An event ends the jobs of all cells of a row.
type event struct {
	name     string
	flags    []string
	terminal bool
	lenient  bool // the job may work at the same time as the rival until holdfast notices the loss
	hit      func(r *row)
	statuses []string
}

// events end a job by its store, a signal or a limit. TestJobDiesWithItsLock adds more.
var events = []event{
	{name: "store stopped", hit: (*row).stopStore, statuses: []string{"79"}},
	{name: "store cut off", hit: func(r *row) { r.proxy.BlackHole() }, statuses: []string{"79"}},
	{name: "key deleted", hit: (*row).deleteKeys, lenient: true, statuses: []string{"79"}},
	{name: "TERM", hit: func(r *row) { r.signal(syscall.SIGTERM) }, statuses: []string{"143"}},
	{name: "Ctrl-C", terminal: true, hit: (*row).interrupt, statuses: []string{"130"}},
	{name: "max-hold", flags: []string{"--max-hold", "5s"}, hit: func(*row) {}, statuses: []string{"124"}},
}

// A row is an event and one cell for each shape.
type row struct {
	t      *testing.T
	event  event
	server *testsvc.Server
	proxy  *faultproxy.Proxy // between the server and the holders
	cells  []*cell
	jobs   *atomic.Int64 // counts all jobs that were run
	late   *atomic.Int64 // counts marks after the rival's first that a pause of the machine explains
}

// run runs each cell of the row once.
func (r *row) run() {
	r.t.Helper()
	r.cells = nil
	paused := watchPauses(r.t)
	for i := range shapes {
		r.cells = append(r.cells, r.start(i))
	}
	for i, c := range r.cells {
		c.await(shapes[i].processes)
		if pid := c.findHoldfast(r.server.URL); pid != 0 && strings.Contains(r.event.name, "warden") {
			// This handle cannot mean another process that gets the same ID later.
			if warden := wardenOf(r.t, pid); warden != 0 {
				c.warden, _ = os.FindProcess(warden) // never fails
			}
		}
		c.rival = start(r.t, r.server.URL, "run", "-v", "-w", "60", c.name, "--", "sh", "-c",
			`echo "$HOLDFAST_FENCING_TOKEN $$" >>`+c.dir+`/marks; sleep 0.2`)
	}
	for _, c := range r.cells {
		c.rival.awaitTurn()
	}
	r.event.hit(r)
	for _, c := range r.cells {
		r.jobs.Add(1)
		r.late.Add(int64(c.check(r.event, paused)))
	}
	r.proxy.Heal()
}

// watchPauses measures how late timers fire on this machine. It returns a function that returns the
// longest delay so far.
func watchPauses(t *testing.T) func() time.Duration {
	const every = 5 * time.Millisecond
	var worst atomic.Int64
	go func() { // ends with the test
		for last := time.Now(); t.Context().Err() == nil; {
			time.Sleep(every)
			now := time.Now()
			worst.Store(max(worst.Load(), int64(now.Sub(last)-every)))
			last = now
		}
	}()
	return func() time.Duration { return time.Duration(worst.Load()) }
}

// tooBusy is the longest pause of the machine that does not excuse a failure. It is a part of the
// time that holdfast has to kill a job.
const tooBusy = cellTTL / 40

// stopStore stops the server until all holders have ended.
func (r *row) stopStore() {
	r.server.Stop()
	defer r.server.Cont()
	for _, c := range r.cells {
		c.status()
	}
}

// deleteKeys deletes the locks. Their holders notice this with the next renewal.
func (r *row) deleteKeys() {
	deleted := time.Now()
	for _, c := range r.cells {
		redis(r.t, r.server, "DEL", c.name)
	}
	for _, c := range r.cells {
		c.status()
		const slack = 2 * time.Second // of a busy machine, for all cells together
		if took := time.Since(deleted); took > cellTTL/3+cellKillAfter+slack {
			r.t.Errorf("%s: the job was told of the deletion, and ended, only after %s", c.shape, took)
		}
	}
}

func (r *row) signal(sig syscall.Signal) {
	for _, c := range r.cells {
		c.signal(sig)
	}
}

// interrupt presses Ctrl-C.
func (r *row) interrupt() {
	for _, c := range r.cells {
		c.term.press(ctrlC)
	}
}
