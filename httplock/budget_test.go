package httplock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// counting returns an in-memory store that counts the requests that it receives.
func counting(asked *atomic.Int64) driver.Engine {
	return &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
		asked.Add(1)
		return send()
	}}
}

// text returns the text of an HTTP request that acquires a lock.
func text(tb testing.TB, header string) (head, body string) {
	tb.Helper()
	id := lockinfo.NewLeaseID()
	b, err := json.Marshal(map[string]any{"name": "job " + id, "lease_id": id, "ttl_ns": 60_000_000_000, "holder": map[string]any{}})
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf("POST /v1/driver/acquire HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n",
		first, len(b), header), string(b)
}

// TestSpentBudget checks that the server does not carry out a request whose time limit has passed
// when its body arrives.
func TestSpentBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		n, _ := served(t, counting(&asked))
		for _, late := range []bool{false, true} {
			asked.Store(0)
			c, err := n.dial(t.Context(), "", first)
			if err != nil {
				t.Fatal(err)
			}
			head, body := text(t, "Holdfast-Timeout-Ms: 500\r\nConnection: close\r\n")
			_, _ = io.WriteString(c, head)
			if late {
				time.Sleep(600 * time.Millisecond)
			}
			_, _ = io.WriteString(c, body)
			_, _ = io.Copy(io.Discard, c)
			if got := asked.Load() == 1; got == late {
				t.Errorf("the body came late: %t; the request was carried out: %t", late, got)
			}
		}
	})
}

// TestOneBudget checks that all hops share one time budget: the time that the caller has left, at
// most 15 s. The error with the unknown outcome arrives before the caller's context ends.
func TestOneBudget(t *testing.T) {
	for _, given := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var left time.Duration
			var store driver.Engine = &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(ctx context.Context, _ hook.Request, _ func() error) error {
				end, _ := ctx.Deadline()
				left = time.Until(end)
				<-ctx.Done()
				return ctx.Err()
			}}
			n := &network{}
			for _, name := range []string{first, second} {
				n.with(t, name, store, nil)
				store = n.open(t, name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), given)
			defer cancel()
			began, budget := time.Now(), min(given, 15*time.Second)
			_, err := store.Acquire(ctx, drivertest.Request("job", time.Minute))
			took := time.Since(began)
			if err == nil || driver.Definite(err) || ctx.Err() != nil || took >= budget || took < budget*3/4 {
				t.Errorf("given %s: %v after %s", given, err, took)
			}
			if left >= budget || left < budget*3/4 {
				t.Errorf("given %s: the store is given %s", given, left)
			}
		})
	}
}
