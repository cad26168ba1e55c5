package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

var (
	cells  = flag.Int("cells", 1, "how often each cell of the matrix of TestJobDiesWithItsLock is run")
	soak   = flag.Duration("soak", 0, "about how long a soak takes that this is a part of: 20 runs of each cell in half an hour; 0 for what -cells says")
	report = flag.String("report", "", "file to which the matrix appends what it saw, as a row of a Markdown table")
)

// TestJobDiesWithItsLock hits jobs of every shape with every event that ends a lock or its guards.
// No process of a job may write a mark after the first mark of a rival, and no process may be left.
func TestJobDiesWithItsLock(t *testing.T) {
	t.Parallel()
	rows := slices.Clone(events)
	rows = append(rows,
		event{name: "KILL", hit: func(r *row) { r.signal(syscall.SIGKILL) }, statuses: []string{"137"}},
		event{name: "STOP", hit: func(r *row) { r.signal(syscall.SIGSTOP) }, statuses: []string{"79"}})
	for _, e := range events {
		hit := e.hit
		e.name, e.statuses = "KILL of the warden, "+e.name, append(e.statuses, "137")
		e.hit = func(r *row) {
			for _, c := range r.cells {
				if c.warden != nil {
					_ = c.warden.Kill() // it may have ended meanwhile
				}
			}
			hit(r)
		}
		rows = append(rows, e)
	}
	var jobs, late atomic.Int64
	for _, e := range rows {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r := &row{t: t, event: e, server: testsvc.Redis(t), jobs: &jobs, late: &late}
			r.proxy = faultproxy.New(t, r.server.Addr)
			for range max(*cells, int(20**soak/(30*time.Minute))) {
				r.run()
			}
		})
	}
	t.Cleanup(func() {
		saw := fmt.Sprintf("%d jobs, in %d shapes, ended by %d events: %d marks beside a rival, 0 processes left",
			jobs.Load(), len(shapes), len(rows), late.Load())
		if late.Load() > 0 {
			saw += " (the machine was too busy to kill in time)"
		}
		if t.Failed() {
			saw = "FAILED"
		}
		t.Log(saw)
		reportRow(t, saw)
	})
}

// reportRow adds what the matrix saw to the report of a soak.
func reportRow(t *testing.T, saw string) {
	if *report == "" {
		return
	}
	f, err := os.OpenFile(*report, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	const fault = "the store stops, is cut off or forgets the lock; TERM, Ctrl-C, `--max-hold`; holdfast, its warden or both are killed or stopped"
	const must = "nobody of the job works beside a rival, nor is left"
	if _, err := fmt.Fprintf(f, "| %s | %s | %s | `%s` |\n", fault, must, saw, t.Name()); err != nil {
		t.Error(err)
	}
}
