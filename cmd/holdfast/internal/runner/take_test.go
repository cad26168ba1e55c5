//go:build unix

package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

const ttl = 30 * time.Second

func newClient(t *testing.T, engine driver.Engine) *holdfast.Client {
	t.Helper()
	c, err := holdfast.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // never fails in memory
	return c
}

// handedOver has another client hold the lock for three seconds while take waits
// for it, and checks that what take is handed has its whole TTL before the
// library asks for that by itself.
func handedOver(t *testing.T, take func(c *holdfast.Client)) {
	t.Helper()
	store := mem.New(nil)
	first, err := newClient(t, store).TryAcquire(t.Context(), "job", nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(3*time.Second, func() { _ = first.Release(t.Context()) }) // never fails in memory
	client := newClient(t, store)
	go take(client)
	const soon = 50 * time.Millisecond
	time.Sleep(3*time.Second + soon)
	lock, err := store.Inspect(t.Context(), "job")
	if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID == first.ID() {
		t.Fatalf("%+v, %v: want another holder", lock, err)
	}
	if left := lock.Holders[0].ExpiresIn; left < ttl-soon {
		t.Errorf("the command starts with %s left", left)
	}
}

// TestRunHasTheWholeTTL checks that the lease under which a command is run has
// its whole TTL, even if another holder handed it over.
func TestRunHasTheWholeTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan hold, 1)
		handedOver(t, func(c *holdfast.Client) {
			j := Job{Client: c, Names: []string{"job"}, Opts: holdfast.AcquireOptions{TTL: ttl}, Warn: t.Logf}
			held, err := j.take(t.Context())
			if err != nil {
				t.Error(err)
			}
			done <- held
		})
		if held := <-done; held.term != nil {
			_ = held.Release(t.Context()) // never fails in memory
		}
	})
}

// TestOnceHasTheWholeTTL is TestRunHasTheWholeTTL for do-once work. It also checks
// that a signal which came before the work took over the signals keeps the command
// from being started.
func TestOnceHasTheWholeTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, signal := context.WithCancel(t.Context())
		o := &once{working: make(chan struct{})}
		done := make(chan error, 1)
		handedOver(t, func(c *holdfast.Client) {
			o.Client, o.Names, o.Opts.TTL = c, []string{"job"}, ttl
			_, err := o.take(ctx)
			done <- err
		})
		signal()
		<-o.working
		if err := <-done; !errors.Is(err, context.Canceled) || o.output != nil {
			t.Errorf("the command was started: %t (%v)", o.output != nil, err)
		}
	})
}

// TestOnceEndsWithItsVerdict checks that a command that was stopped ends with the
// reason for that, however the call of Once ends that is left to itself: it could
// write its own error over the verdict, which only -race sees each time.
func TestOnceEndsWithItsVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		if _, err := newClient(t, store).TryAcquire(t.Context(), "job", nil); err != nil {
			t.Fatal(err)
		}
		o := &once{stopped: make(chan *exit.Error, 1)}
		o.Client, o.Names, o.Opts.TTL = newClient(t, store), []string{"job"}, ttl
		verdict := &exit.Error{Status: exit.Lost}
		o.stopped <- verdict
		if _, _, err := o.await(t.Context()); err != verdict {
			t.Errorf("await returns %v, want the verdict", err)
		}
		synctest.Wait() // for the call of Once
	})
}
