package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/sqlitelock"
)

// schedule implements "schedule NAME [fails] [stays]" in scripts. It runs a replica of a schedule
// of every second in the default store until its first run has completed or failed, or, with stays,
// until the end of the script.
func schedule(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: schedule NAME [fails] [stays]")
	}
	dir := filepath.Join(ts.Getenv("XDG_STATE_HOME"), "holdfast")
	ts.Check(os.MkdirAll(dir, 0o700))
	engine, err := sqlitelock.OpenURL(context.Background(), "sqlite://"+filepath.Join(dir, "locks.db"), nil)
	ts.Check(err)
	client, err := holdfast.New(engine, &holdfast.Options{Holder: holdfast.Holder{Host: "web-1", Program: "reports"}})
	ts.Check(err)
	ctx, stop := context.WithCancel(context.Background())
	over, settled := make(chan error, 1), make(chan struct{}, 1000)
	opts := &holdfast.EveryOptions{MaxAttempts: 1, Missed: func(holdfast.MissedRuns) { settled <- struct{}{} }}
	go func() {
		over <- client.Every(ctx, args[0], holdfast.Periodic(time.Unix(0, 0), time.Second), opts, func(context.Context, holdfast.EveryRun) error {
			if slices.Contains(args, "fails") {
				return errors.New("no disk")
			}
			settled <- struct{}{}
			return nil
		})
	}()
	end := func() {
		stop()
		if err := <-over; !errors.Is(err, context.Canceled) {
			ts.Logf("%v", err)
		}
		_ = client.Close()
		_ = engine.Close()
	}
	select {
	case <-settled:
	case <-time.After(20 * time.Second):
		ts.Fatalf("no run within 20s")
	}
	if slices.Contains(args, "stays") {
		ts.Defer(end)
	} else {
		end()
	}
}
