package onetime_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/onetime"
)

// A faulty is an engine between the service and a memlock. Its hooks run before the real request,
// as a lost request, or after it, as a lost reply. The service gets the errors of the hooks. n
// counts the calls of op from 1.
type faulty struct {
	*mem.Engine
	selfPruning bool

	mu     sync.Mutex // guards the rest
	before func(ctx context.Context, op string, n int) error
	after  func(ctx context.Context, op string, n int) error
	calls  map[string]int
	names  map[string]bool // of the locks that were acquired
	tokens map[driver.Digest]bool
	pruned int // tokens that the store reported as pruned
}

var errLink = errors.New("connection reset")

func newFaulty() *faulty {
	return &faulty{
		Engine: mem.New(nil), before: none, after: none,
		calls: map[string]int{}, names: map[string]bool{}, tokens: map[driver.Digest]bool{},
	}
}

func none(context.Context, string, int) error { return nil }

// set replaces the hooks that are not nil.
func (f *faulty) set(before, after func(context.Context, string, int) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before != nil {
		f.before = before
	}
	if after != nil {
		f.after = after
	}
}

// lose returns a hook that fails the first n calls of op with err.
func lose(op string, n int, err error) func(context.Context, string, int) error {
	lost := 0
	var mu sync.Mutex
	return func(_ context.Context, o string, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		if o != op || lost == n {
			return nil
		}
		lost++
		return err
	}
}

// always is more calls than a test makes.
const always = 1 << 30

func (f *faulty) heal() { f.set(none, none) }

// count returns how many calls of op there were.
func (f *faulty) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// left returns how many deposited tokens are not pruned yet.
func (f *faulty) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.tokens) - f.pruned
}

// total returns how many calls there were.
func (f *faulty) total() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, calls := range f.calls {
		n += calls
	}
	return n
}

func (f *faulty) do(ctx context.Context, op string, request func() error) error {
	f.mu.Lock()
	f.calls[op]++
	n, before, after := f.calls[op], f.before, f.after
	f.mu.Unlock()
	if err := before(ctx, op, n); err != nil {
		return err
	}
	err := request()
	if lost := after(ctx, op, n); lost != nil {
		return lost
	}
	return err
}

func (f *faulty) Acquire(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, err error) {
	f.mu.Lock()
	f.names[req.Name] = true
	f.mu.Unlock()
	return reply, f.do(ctx, "acquire", func() (err error) {
		reply, err = f.Engine.Acquire(ctx, req)
		return err
	})
}

func (f *faulty) Deposit(ctx context.Context, req driver.DepositRequest) error {
	f.mu.Lock()
	f.tokens[req.Digest] = true
	f.mu.Unlock()
	return f.do(ctx, "deposit", func() error { return f.Engine.Deposit(ctx, req) })
}

func (f *faulty) Redeem(ctx context.Context, req driver.RedeemRequest) (reply driver.VaultReply, err error) {
	err = f.do(ctx, "redeem", func() (err error) {
		reply, err = f.Engine.Redeem(ctx, req)
		return err
	})
	return unless(err, reply)
}

func (f *faulty) Peek(ctx context.Context, p driver.Proof) (reply driver.VaultReply, err error) {
	err = f.do(ctx, "peek", func() (err error) {
		reply, err = f.Engine.Peek(ctx, p)
		return err
	})
	return unless(err, reply)
}

func (f *faulty) Revoke(ctx context.Context, d driver.Digest) (reply driver.VaultReply, err error) {
	err = f.do(ctx, "revoke", func() (err error) {
		reply, err = f.Engine.Revoke(ctx, d)
		return err
	})
	return unless(err, reply)
}

func (f *faulty) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	err = f.do(ctx, "prune", func() (err error) {
		deleted, more, err = f.Engine.Prune(ctx, limit)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.pruned += deleted
		return err
	})
	return deleted, more, err
}

func (f *faulty) SelfPruning() bool { return f.selfPruning }

// unless returns the reply only if err is nil.
func unless(err error, reply driver.VaultReply) (driver.VaultReply, error) {
	if err != nil {
		return driver.VaultReply{}, err
	}
	return reply, nil
}

func newClient(t testing.TB, engine driver.Engine, opts *holdfast.Options) *holdfast.Client {
	t.Helper()
	c, err := holdfast.New(engine, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func newService(t testing.TB, engine driver.Engine, opts *onetime.Options) *onetime.Service {
	t.Helper()
	s, err := onetime.New(newClient(t, engine, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustIssue(t testing.TB, s *onetime.Service, payload string, ttl time.Duration) string {
	t.Helper()
	secret, err := s.Issue(t.Context(), []byte(payload), ttl)
	if err != nil {
		t.Fatalf("Issue: %v", err)
	}
	return secret
}

func wantRedeem(t testing.TB, s *onetime.Service, secret, payload string) {
	t.Helper()
	got, err := s.Redeem(t.Context(), secret)
	if err != nil || string(got) != payload {
		t.Errorf("Redeem = %q, %v; want %q", got, err, payload)
	}
}

// allErrors are the errors that callers test for.
var allErrors = []error{
	onetime.ErrMalformed, onetime.ErrUnknown, onetime.ErrExpired, onetime.ErrRevoked, onetime.ErrRedeemed,
	onetime.ErrTooManyAttempts,
	holdfast.ErrHeld, holdfast.ErrLost, holdfast.ErrUnavailable, holdfast.ErrOutcomeUnknown, holdfast.ErrUnsupported,
	holdfast.ErrInvalid, holdfast.ErrPermission, holdfast.ErrKindMismatch, holdfast.ErrDeadlock, holdfast.ErrClosed,
}

// wantErr checks that err wraps want and also, and none of the other errors in allErrors.
func wantErr(t testing.TB, err, want error, also ...error) {
	t.Helper()
	for _, e := range append(also, want) {
		if !errors.Is(err, e) {
			t.Errorf("error = %v, want %v", err, e)
		}
	}
	for _, e := range allErrors {
		isWanted := e == want
		for _, a := range also {
			isWanted = isWanted || e == a
		}
		if !isWanted && errors.Is(err, e) {
			t.Errorf("error = %v: it is also %v", err, e)
		}
	}
}

// texts returns all strings and byte slices in v, at any depth.
func texts(v any) []string {
	w := walker{seen: map[string]bool{}}
	w.walk(reflect.ValueOf(v))
	return w.found
}

type walker struct {
	seen  map[string]bool // pointers that were followed
	found []string
}

func (w *walker) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		w.found = append(w.found, v.String())
	case reflect.Pointer, reflect.Map:
		id := fmt.Sprint(v.Type(), v.Pointer())
		if v.IsNil() || w.seen[id] {
			return
		}
		w.seen[id] = true
		if v.Kind() == reflect.Pointer {
			w.walk(v.Elem())
			return
		}
		for _, k := range v.MapKeys() {
			w.walk(k)
			w.walk(v.MapIndex(k))
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.walk(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			w.found = append(w.found, string(v.Bytes()))
			return
		}
		for i := range v.Len() {
			w.walk(v.Index(i))
		}
	}
}
