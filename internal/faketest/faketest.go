// Package faketest has a T that records failures: for tests of functions that
// fail tests.
package faketest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// A T is a testing.TB that remembers what it fails with, and keeps that from the test
// that it embeds.
type T struct {
	testing.TB
	ctx   context.Context
	whole bool // Run runs the cleanups

	mu       sync.Mutex // guards the rest
	texts    []string
	cleanups []func()
}

// New returns a T for a test that is run as part of t. Its cleanups are t's.
func New(t testing.TB) *T { return &T{TB: t, ctx: t.Context()} }

// Run runs a test as package testing does, with its cleanups, and returns what it
// failed with.
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

// Do calls do on a goroutine that a fatal failure ends, and waits for that. A panic is
// a failure.
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

// last takes the cleanup that was registered last; nil if there is none left.
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

// Texts returns what it has failed with so far.
func (f *T) Texts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.texts)
}

// Failed reports whether it has failed.
func (f *T) Failed() bool { return len(f.Texts()) > 0 }

// Helper does nothing: no line is shown.
func (f *T) Helper() {}

// Context ends with the test that Run runs.
func (f *T) Context() context.Context { return f.ctx }

// Cleanup registers what is called at the end of the test that Run runs, or else of the
// embedded one.
func (f *T) Cleanup(cleanup func()) {
	if !f.whole {
		f.TB.Cleanup(cleanup)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cleanups = append(f.cleanups, cleanup)
}

// Error remembers a failure.
func (f *T) Error(args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.texts = append(f.texts, fmt.Sprint(args...))
}

// Errorf remembers a failure.
func (f *T) Errorf(format string, args ...any) { f.Error(fmt.Sprintf(format, args...)) }

// Fatal remembers a failure and ends the goroutine.
func (f *T) Fatal(args ...any) {
	f.Error(args...)
	runtime.Goexit()
}

// Fatalf remembers a failure and ends the goroutine.
func (f *T) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }
