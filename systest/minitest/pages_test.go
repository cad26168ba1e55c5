package minitest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/holdfasttest"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/redislock"
)

// The tests that docs/testing.md shows for stores that are not in memory. TestPagesAreTested checks
// that the page shows them word for word.

func importRows(ctx context.Context, client *holdfast.Client, rows []string, write func(row string) error) error {
	return client.Do(ctx, "import", nil, func(context.Context, *holdfast.Lease) error {
		for _, row := range rows {
			if err := write(row); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestImportOnRedis(t *testing.T) {
	engine, err := redislock.Open(t.Context(), holdfasttest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := importRows(t.Context(), client, []string{"a", "b"}, func(string) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestImportOnMiniredis(t *testing.T) {
	server := miniredis.RunT(t)
	server.ClockTTL(true) // without this no lease ever ends by itself
	engine, err := redislock.Open(t.Context(), "redis://"+server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := importRows(t.Context(), client, []string{"a", "b"}, func(string) error { return nil }); err != nil {
		t.Error(err)
	}
}

// TestTimeOnMiniredis checks the properties of miniredis's time that a test must know.
func TestTimeOnMiniredis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := start(t)
		server.ClockTTL(false) // the default
		engine, err := redislock.New(dial(t, server), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		take := func(ttl time.Duration) driver.AcquireReply {
			t.Helper()
			reply, err := engine.Acquire(t.Context(), driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: ttl})
			if err != nil {
				t.Fatal(err)
			}
			return reply
		}
		first := take(time.Second)
		time.Sleep(24 * time.Hour)
		if again := take(time.Second); again.Outcome != driver.Held {
			t.Errorf("a lease of a second has ended in a day: %+v", again)
		}
		server.FastForward(time.Second)
		second := take(time.Second)
		if second.Outcome != driver.Granted {
			t.Errorf("a lease of a second has not ended after FastForward: %+v", second)
		}
		if grown := second.Token - first.Token; grown < uint64((24 * time.Hour).Microseconds()) {
			t.Errorf("the token has grown by %d in a day: it follows TIME, which is that of the test", grown)
		}
		server.FastForward(time.Hour) // moves no clock
		if third := take(time.Second); third.Token > second.Token+uint64(time.Minute.Microseconds()) {
			t.Errorf("token %d after %d: FastForward has moved TIME", third.Token, second.Token)
		}
	})
}

// TestLossOnMiniredis checks a whole client in virtual time. Its lease is renewed while the server
// replies, ends in time when the server does not, and the lock is then granted to another client.
func TestLossOnMiniredis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := start(t)
		client, other := newClient(t, server), newClient(t, server)
		lease, err := client.Acquire(t.Context(), "import", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if !lease.Valid() {
			t.Fatal("lost in an hour in which the server answered")
		}
		cut := time.Now()
		server.SetError("LOADING it is not there")
		<-lease.Context().Done()
		if took := time.Since(cut); took > 30*time.Second || !errors.Is(context.Cause(lease.Context()), holdfast.ErrLost) {
			t.Errorf("ended %s after the last answer, with %v", took, context.Cause(lease.Context()))
		}
		server.SetError("")
		next, err := other.Acquire(t.Context(), "import", nil)
		if err != nil {
			t.Fatal(err)
		}
		if next.Token() <= lease.Token() {
			t.Errorf("token %d after %d", next.Token(), lease.Token())
		}
	})
}

func newClient(t testing.TB, server *miniredis.Miniredis) *holdfast.Client {
	t.Helper()
	engine, err := redislock.New(dial(t, server), nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return client
}
