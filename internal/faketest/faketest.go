// Package faketest has a T that records failures, for tests of functions that fail tests.
package faketest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// A T is a testing.TB that records failures, and does not pass them to the test that it embeds.
type T struct {
	testing.TB
	ctx   context.Context
	whole bool // Run made it, and runs its cleanups

	mu       sync.Mutex // guards the rest
	texts    []string
	cleanups []func()
}

// New returns a T for a test that runs as part of t. Its cleanups are registered with t.
func New(t testing.TB) *T { return &T{TB: t, ctx: t.Context()} }

// Run runs a test as package testing does, with its cleanups, and returns the texts of its
// failures.
func Run(t testing.TB, test func(testing.TB)) []string {
	f := New(t)
	ctx, end := context.WithCancel(f.ctx)
	f.ctx, f.whole = ctx, true
	f.Do(func() { test(f) })
	end()
	for cleanup := f.last(); cleanup != nil; cleanup = f.last() {
		f.Do(cleanup)
	}
	return f.Texts()
}

// Do calls do on a new goroutine, which a fatal failure ends, and waits until it has ended. A panic
// is a failure.
func (f *T) Do(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				f.Error("panic:", p)
			}
		}()
		do()
	}()
	<-done
}

// last removes and returns the cleanup that was registered last, or nil if none is left.
func (f *T) last() func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.cleanups)
	if n == 0 {
		return nil
	}
	cleanup := f.cleanups[n-1]
	f.cleanups = f.cleanups[:n-1]
	return cleanup
}

// Texts returns the texts of the failures so far.
func (f *T) Texts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.texts)
}

// Failed reports whether there was a failure.
func (f *T) Failed() bool { return len(f.Texts()) > 0 }

// Helper does nothing, because failures are recorded without lines.
func (f *T) Helper() {}

// Context returns a context that ends with the test that Run runs.
func (f *T) Context() context.Context { return f.ctx }

// Cleanup registers a function for the end of the test that Run runs, or of the embedded test if
// New made f.
func (f *T) Cleanup(cleanup func()) {
	if !f.whole {
		f.TB.Cleanup(cleanup)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cleanups = append(f.cleanups, cleanup)
}

// Error records a failure.
func (f *T) Error(args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.texts = append(f.texts, fmt.Sprint(args...))
}

// Errorf records a failure.
func (f *T) Errorf(format string, args ...any) { f.Error(fmt.Sprintf(format, args...)) }

// Fatal records a failure and ends the goroutine.
func (f *T) Fatal(args ...any) {
	f.Error(args...)
	runtime.Goexit()
}

// Fatalf records a failure and ends the goroutine.
func (f *T) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }
