package holdfast_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A faulty is an engine between the client and a memory engine. The hooks run before (a lost
// request) or after (a lost reply) the real request. An error of a hook is what the client
// receives.
type faulty struct {
	*hooked
	Engine *mem.Engine

	mu     sync.Mutex // guards the rest
	before func(ctx context.Context, op string) error
	after  func(ctx context.Context, op string) error
	calls  map[string]int
	sizes  []int     // of the batches of Extend
	last   time.Time // of the last Extend

	deaf     bool                      // new watches deliver only the notices of tell
	taps     map[lockinfo.LeaseID]*tap // the deaf watches
	watching int                       // the number of watches that are not stopped
}

type hooked = hook.Engine

// ops are the requests that the hooks receive, with their names in the hooks.
var ops = map[string]string{
	"Acquire": "acquire", "AcquireAll": "acquire-all", "Extend": "extend", "Refresh": "refresh", "Release": "release",
	"Downgrade": "downgrade", "Complete": "complete", "Inspect": "inspect",
}

var errLink = errors.New("connection reset")

func newFaulty() *faulty { return newFaultyOn(mem.New(nil)) }

// newFaultyOn returns an engine of another process on the same store.
func newFaultyOn(store *mem.Engine) *faulty {
	none := func(context.Context, string) error { return nil }
	f := &faulty{
		Engine: store, before: none, after: none,
		calls: map[string]int{}, taps: map[lockinfo.LeaseID]*tap{},
	}
	f.hooked = &hook.Engine{Forward: driver.Forward{Engine: store}, Each: f.each}
	return f
}

// set replaces the hooks; nil keeps the present hook.
func (f *faulty) set(before, after func(context.Context, string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before != nil {
		f.before = before
	}
	if after != nil {
		f.after = after
	}
}

func (f *faulty) heal() {
	none := func(context.Context, string) error { return nil }
	f.set(none, none)
}

func (f *faulty) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

func (f *faulty) each(ctx context.Context, req hook.Request, send func() error) error {
	if op, known := ops[req.Method]; known {
		return f.do(ctx, op, send)
	}
	return send()
}

// do sends a request between the hooks.
func (f *faulty) do(ctx context.Context, op string, send func() error) error {
	f.mu.Lock()
	f.calls[op]++
	before, after := f.before, f.after
	f.mu.Unlock()
	if err := before(ctx, op); err != nil {
		return err
	}
	err := send()
	if e := after(ctx, op); e != nil {
		return e
	}
	return err
}

func (f *faulty) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	f.mu.Lock()
	f.sizes = append(f.sizes, len(reqs))
	f.last = time.Now()
	f.mu.Unlock()
	return f.hooked.Extend(ctx, reqs)
}

// A tap is a watch of the client. If c is not nil, it delivers only the notices of tell.
type tap struct {
	driver.Watch
	engine *faulty
	id     lockinfo.LeaseID
	c      chan driver.Notice
	stop   sync.Once
}

func (f *faulty) Watch(id lockinfo.LeaseID) driver.Watch {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watching++
	w := &tap{Watch: f.Engine.Watch(id), engine: f, id: id}
	if f.deaf {
		w.c = make(chan driver.Notice, 1)
		f.taps[id] = w
	}
	return w
}

func (w *tap) C() <-chan driver.Notice {
	if w.c != nil {
		return w.c
	}
	return w.Watch.C()
}

func (w *tap) Stop() {
	w.stop.Do(func() {
		w.engine.mu.Lock()
		defer w.engine.mu.Unlock()
		w.engine.watching--
		delete(w.engine.taps, w.id)
	})
	w.Watch.Stop()
}

// tell sends a notice to all deaf watches, in place of an unread notice.
func (f *faulty) tell(notice driver.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.taps {
		select {
		case <-w.c:
		default:
		}
		w.c <- notice
	}
}

// A plain is an engine with only the methods of driver.Engine, and no capabilities.
type plain struct{ driver.Engine }

func (plain) Capabilities() driver.Capabilities { return driver.Capabilities{} }

// fullAndPlain are the ways to use an engine: with all its capabilities, and as a plain engine.
var fullAndPlain = []func(*faulty) driver.Engine{
	func(f *faulty) driver.Engine { return f },
	func(f *faulty) driver.Engine { return plain{f} },
}

// fail makes a hook that returns err for the named operations.
func fail(err error, ops ...string) func(context.Context, string) error {
	return func(_ context.Context, op string) error {
		for _, o := range ops {
			if o == op {
				return err
			}
		}
		return nil
	}
}

// hang makes a hook that blocks the named operations until ctx ends.
func hang(ops ...string) func(context.Context, string) error {
	return func(ctx context.Context, op string) error {
		if fail(errLink, ops...)(ctx, op) == nil {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// delay makes a hook that sleeps for d.
func delay(d time.Duration) func(context.Context, string) error {
	return func(context.Context, string) error {
		time.Sleep(d)
		return nil
	}
}

// newClient returns a client that is closed at the end of the test. The engine stays open.
func newClient(t testing.TB, engine driver.Engine, opts *holdfast.Options) *holdfast.Client {
	t.Helper()
	o := *cmp.Or(opts, &holdfast.Options{})
	if o.Logger == nil { // tests lose many leases
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.SharedEngine = true
	c, err := holdfast.New(engine, &o)
	must(t, err)
	t.Cleanup(func() {
		if err := closePatiently(c); err != nil {
			t.Errorf("Close: %v", err)
		}
		if f, ok := engine.(*faulty); ok {
			f.mu.Lock()
			defer f.mu.Unlock()
			expect(t, f.watching == 0, "%d watches stayed behind", f.watching)
		}
	})
	return c
}

// inBubble runs a test in its own bubble, with a client and its engine.
func inBubble(t *testing.T, opts *holdfast.Options, test func(t *testing.T, engine *faulty, c *holdfast.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		test(t, engine, newClient(t, engine, opts))
	})
}

// runWithClient runs a subtest in its own bubble, with a client and its engine.
func runWithClient(t *testing.T, name string, opts *holdfast.Options, test func(t *testing.T, engine *faulty, c *holdfast.Client)) {
	t.Run(name, func(t *testing.T) { inBubble(t, opts, test) })
}

// runInBubble runs a subtest in its own bubble.
func runInBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// closePatiently closes a client whose store may be slower than its request timeout.
func closePatiently(c *holdfast.Client) (err error) {
	for range 12 {
		if err = c.Close(); err == nil {
			break
		}
	}
	return err
}

func mustAcquire(t testing.TB, c *holdfast.Client, name string, opts *holdfast.AcquireOptions) *holdfast.Lease {
	t.Helper()
	l, err := c.TryAcquire(context.Background(), name, opts)
	must(t, err)
	return l
}

// shared and semaphore are the options for these modes.
var shared = &holdfast.AcquireOptions{Mode: holdfast.Shared}

func semaphore(limit, permits int) *holdfast.AcquireOptions {
	return &holdfast.AcquireOptions{Mode: holdfast.Permits(permits, limit)}
}

// An outcome is what an Acquire returned, and when.
type outcome struct {
	lease *holdfast.Lease
	err   error
	at    time.Time
}

// enqueue starts an Acquire and returns once it waits or has ended.
func enqueue(ctx context.Context, c *holdfast.Client, name string, opts *holdfast.AcquireOptions) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		l, err := c.Acquire(ctx, name, opts)
		done <- outcome{l, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

// granted waits for an outcome, which must be a lease.
func granted(t testing.TB, done <-chan outcome) outcome {
	t.Helper()
	o := <-done
	must(t, o.err)
	return o
}

// foreign acquires the lock in the store, past the hooks, for ttl and without keep-alive.
func foreign(t testing.TB, f *faulty, name string, ttl time.Duration) (release func()) {
	t.Helper()
	id := lockinfo.NewLeaseID()
	reply, err := f.Engine.Acquire(t.Context(), driver.AcquireRequest{Name: name, LeaseID: id, TTL: ttl})
	need(t, err == nil && reply.Outcome == driver.Granted, "Acquire = %+v, %v; want a grant", reply, err)
	return func() { _ = f.Engine.Release(context.Background(), driver.ReleaseRequest{Name: name, LeaseID: id}) }
}

// nothingLeft fails t if the store has a lease or a place of any of the names.
func nothingLeft(t testing.TB, f *faulty, names ...string) {
	t.Helper()
	for _, name := range names {
		lock, err := f.Engine.Inspect(context.Background(), name)
		must(t, err)
		expect(t, len(lock.Holders)+len(lock.Queue) <= 0, "%q: %d leases and %d places stayed behind", name, len(lock.Holders), len(lock.Queue))
	}
}

// trusted fails t if the store may end the lease while its holder trusts it. It checks this every
// step for span, or until the lease ends.
func trusted(t testing.TB, f *faulty, l *holdfast.Lease, step, span time.Duration) {
	t.Helper()
	for range span / step {
		if !l.Valid() {
			return
		}
		deadline := l.Deadline() // read before the store's expiry: both only grow
		lock, err := f.Engine.Inspect(context.Background(), l.Name())
		must(t, err)
		left := time.Duration(-1)
		for _, h := range lock.Holders {
			if h.LeaseID == l.ID() && h.Token == l.Token() && !h.Released {
				left = h.ExpiresIn
			}
		}
		expiry := time.Now().Add(left)
		need(t, !deadline.After(expiry), "trusted for %s, but the store keeps it for %s (-1: not at all)", time.Until(deadline), left)
		time.Sleep(step)
	}
}

// holders returns how many leases of name the store has.
func holders(t testing.TB, e driver.Engine, name string) int {
	t.Helper()
	lock, err := e.Inspect(context.Background(), name)
	must(t, err)
	return len(lock.Holders)
}

// expect fails the test with a message unless ok.
func expect(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// need is expect, but ends the test.
func need(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// must ends the test unless err is nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errOf returns the error of a call.
func errOf[R any](_ R, err error) error { return err }

func wantErr(t testing.TB, err, target error) {
	t.Helper()
	expect(t, errors.Is(err, target), "error = %v, want one that is %v", err, target)
}

// stillWaits fails t if the Acquire has ended.
func stillWaits(t *testing.T, waiting <-chan outcome) {
	t.Helper()
	synctest.Wait()
	select {
	case o := <-waiting:
		t.Fatalf("Acquire = %+v, %v; want it to wait", o.lease, o.err)
	default:
	}
}
