package main

import (
	"fmt"
	"os"
	"testing"
)

// A life acts as the test for which internal/testsvc starts servers: the servers end with it. It
// has the methods of testing.TB that testsvc uses.
type life struct {
	testing.TB
	cleanups []func()
}

// A failure is the panic that ends a life early.
type failure struct{ error }

func (l *life) Helper()                        {}
func (l *life) Cleanup(f func())               { l.cleanups = append(l.cleanups, f) }
func (l *life) Fatal(args ...any)              { panic(failure{fmt.Errorf("%s", fmt.Sprint(args...))}) }
func (l *life) Fatalf(format string, a ...any) { panic(failure{fmt.Errorf(format, a...)}) }

func (l *life) Errorf(format string, a ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", a...) }

func (l *life) TempDir() string {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// end runs the cleanups, the latest first.
func (l *life) end() {
	for len(l.cleanups) > 0 {
		last := len(l.cleanups) - 1
		f := l.cleanups[last]
		l.cleanups = l.cleanups[:last]
		f()
	}
}

// live calls f with a life, and returns the error of f or of a server.
func live(f func(l *life) error) error {
	l := new(life)
	defer l.end()
	return caught(func() error { return f(l) })
}

// caught calls f, and returns its error or the failure that ended it.
func caught(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	return f()
}
