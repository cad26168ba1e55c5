package systest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

const dataTTL = 900 * time.Millisecond

// A dataLoss deletes data that the store has of a lease. take reports whether that included the
// lease itself.
type dataLoss struct {
	what string
	take func(t *testing.T, s *store) (lease bool)
}

var dataLosses = []dataLoss{
	{"FLUSHALL", func(t *testing.T, s *store) bool { s.do(t, "FLUSHALL"); return true }},
	{"restart empty", restart},
	{"eviction", func(t *testing.T, s *store) bool { s.evict(t); return true }},
	{"DEL of the lock", delKey(func(key string) bool { return key == "a" })},
	{"DEL of the last token", delKey(isOf("fence"))},
	{"DEL of the holders", delKey(isOf("holders"))},
	{"DEL of the detail", delKey(isOf("detail"))},
}

// isOf returns a function that reports whether a key is the given companion of the lock "a".
func isOf(companion string) func(key string) bool {
	return func(key string) bool { return strings.HasPrefix(key, "holdfast:{a}:"+companion) }
}

// delKey deletes the matching keys. A shared lease is lost with any key except the last token, an
// exclusive lease with the key of the lock.
func delKey(meant func(key string) bool) func(t *testing.T, s *store) bool {
	return func(t *testing.T, s *store) (lease bool) {
		keys, err := s.do(t, "KEYS", "*").AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range slices.DeleteFunc(keys, func(key string) bool { return !meant(key) }) {
			s.do(t, "DEL", key)
			lease = lease || !isOf("fence")(key)
		}
		return lease
	}
}

// restart restarts the server and returns when s.plain is connected again.
func restart(t *testing.T, s *store) bool {
	s.server.Restart()
	eventually(t, "a connection", func() bool {
		return s.plain.Do(t.Context(), s.plain.B().Ping().Build()).Error() == nil
	})
	return true
}

// evict makes the server evict all keys, as a full server does.
func (s *store) evict(t *testing.T) {
	t.Helper()
	s.tell(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	s.tell(t, "CONFIG", "SET", "maxmemory", "1")
	eventually(t, "everything is evicted", func() bool { return s.tell(t, "DBSIZE") == "0" })
	s.tell(t, "CONFIG", "SET", "maxmemory", "0")
}

// TestDataLoss checks that whatever data the store loses, tokens grow, and the holder of a lost
// lease learns of it with the next renewal. INVARIANT I2, INVARIANT I3.
func TestDataLoss(t *testing.T) {
	s := newStore(t)
	client := newClient(t, s.engine, &holdfast.Options{TTL: dataTTL})
	strict, told, losses := 0, 0, 0
	longest := time.Duration(0)
	count := soak.Count(2*len(dataLosses), 200)
	for i := range count {
		loss, mode := dataLosses[i%len(dataLosses)], []holdfast.Mode{holdfast.Exclusive, holdfast.Shared}[i/len(dataLosses)%2]
		lease := acquireWith(t, client, "a", &holdfast.AcquireOptions{Mode: mode})
		token := lease.Token()
		ended := watchEnd(lease)
		began := time.Now()
		if loss.take(t, s) {
			losses++
			select {
			case e := <-ended:
				longest = max(longest, e.at.Sub(began))
				if told++; !errors.Is(e.cause, holdfast.ErrLost) {
					t.Errorf("%s: cause %v, want ErrLost", loss.what, e.cause)
				}
			case <-time.After(patience):
				t.Fatalf("%s, %s: the holder is never notified", loss.what, mode)
			}
		}
		_ = lease.Release(context.Background()) // mostly lost before
		next := acquireWith(t, client, "a", nil)
		if strict++; next.Token() <= token {
			strict--
			t.Errorf("%s, %s: token %d after %d", loss.what, mode, next.Token(), token)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Errorf("%s: release: %v", loss.what, err)
		}
	}
	report.Row(t, "flush, DEL of each key, eviction, restart empty", "tokens strict; the old holder notified within one renewal interval",
		"tokens strict %d of %d; of %d leases that were lost %d holders were notified, after %s at most, the interval is %s",
		strict, count, losses, told, longest.Round(time.Millisecond), dataTTL/3)
	if bound := dataTTL/3 + 100*time.Millisecond; longest > bound {
		t.Errorf("a holder was notified after %s, want at most %s", longest, bound)
	}
}

// TestRestartWithData checks that a store that restarts with its data loses no lease.
func TestRestartWithData(t *testing.T) {
	s := newStore(t, "--appendonly", "yes", "--appendfsync", "always")
	client := newClient(t, s.engine, nil)
	lease := acquireWith(t, client, "a", &holdfast.AcquireOptions{TTL: 10 * time.Second})
	s.server.Restart()
	if err := lease.Extend(t.Context(), 11*time.Second); err != nil {
		t.Fatalf("extend after the restart: %v", err)
	}
	if got := s.holding(t, "a"); got.Token != lease.Token() {
		t.Errorf("the store has %+v, the lease has token %d", got, lease.Token())
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := acquireWith(t, client, "a", nil); next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
}
