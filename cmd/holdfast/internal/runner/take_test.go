//go:build unix

package runner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
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

// handedOver has another client hold the lock for three seconds while take waits for it. It checks
// that the lease of take has its whole TTL before the library renews it by itself.
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
		if held := <-done; held.Possession != nil {
			_ = held.Release(t.Context()) // never fails in memory
		}
	})
}

// TestOnceHasTheWholeTTL is TestRunHasTheWholeTTL for do-once work.
func TestOnceHasTheWholeTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan *holdfast.OnceRun, 1)
		handedOver(t, func(c *holdfast.Client) {
			o := &once{}
			o.Client, o.Names, o.Opts.TTL = c, []string{"job"}, ttl
			run, err := o.begin(t.Context())
			if err != nil {
				t.Error(err)
			}
			done <- run
		})
		if run := <-done; run != nil {
			_ = run.Fail(t.Context()) // never fails in memory
		}
	})
}
