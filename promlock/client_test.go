package promlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/promlock"
)

// newClient returns a client on a new store, observed by m.
func newClient(t testing.TB, m *promlock.Metrics) *holdfast.Client {
	t.Helper()
	client, err := holdfast.New(mem.New(nil), &holdfast.Options{Observer: m.Observe, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// wantLines fails the test unless each line is exposed.
func wantLines(t *testing.T, m *promlock.Metrics, lines ...string) {
	t.Helper()
	text := expose(t, m)
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is not exposed:\n%s", line, text)
		}
	}
}

// TestGaugesFollow checks that gauges rise with leases and waits, and fall again whatever ends
// these.
func TestGaugesFollow(t *testing.T) {
	work := func(context.Context, *holdfast.Lease) error { return nil }
	ends := map[string]func(t *testing.T, c *holdfast.Client, l *holdfast.Lease){
		"released": func(t *testing.T, _ *holdfast.Client, l *holdfast.Lease) { l.Release(t.Context()) },
		"left":     func(_ *testing.T, _ *holdfast.Client, l *holdfast.Lease) { _, _ = l.Leave() },
		"broken": func(t *testing.T, c *holdfast.Client, _ *holdfast.Lease) {
			_, _ = c.Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada"})
		},
		"closed": func(t *testing.T, c *holdfast.Client, _ *holdfast.Lease) { _ = c.Close() },
		"panic": func(t *testing.T, c *holdfast.Client, l *holdfast.Lease) {
			l.Release(t.Context())
			defer func() { recover() }()
			_ = c.Do(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) error { panic("at work") })
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := promlock.New(nil)
				c := newClient(t, m)
				l, err := c.Acquire(t.Context(), "a", nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() { _ = c.Do(ctx, "a", nil, work) })
				}
				time.Sleep(5 * time.Second)
				wantLines(t, m, `holdfast_held{mode="exclusive"} 1`, `holdfast_waiting{mode="exclusive"} 3`,
					`holdfast_longest_hold_seconds{mode="exclusive"} 5`, `holdfast_oldest_wait_seconds{mode="exclusive"} 5`)
				end(t, c, l)
				all.Wait()
				synctest.Wait()
				wantLines(t, m, `holdfast_held{mode="exclusive"} 0`, `holdfast_waiting{mode="exclusive"} 0`,
					`holdfast_longest_hold_seconds{mode="exclusive"} 0`, `holdfast_oldest_wait_seconds{mode="exclusive"} 0`)
			})
		})
	}
}

// TestManyClients checks that several clients can share metrics, and that the metrics can be read
// meanwhile.
func TestManyClients(t *testing.T) {
	m := promlock.New(&promlock.Options{NameLabel: promlock.FoldNames})
	const clients, pairs = 4, 200
	var all sync.WaitGroup
	for range clients {
		c := newClient(t, m)
		all.Go(func() {
			for i := range pairs {
				l, err := c.Acquire(t.Context(), fmt.Sprint("orders/", i%7), nil)
				if err != nil {
					t.Error(err)
					return
				}
				l.Release(t.Context())
			}
			if _, err := c.TryAcquire(t.Context(), "", nil); !errors.Is(err, holdfast.ErrInvalid) {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		expose(t, m)
	}
	all.Wait()
	wantLines(t, m,
		fmt.Sprintf(`holdfast_acquires_total{mode="exclusive",name="orders/*",result="acquired"} %d`, clients*pairs),
		fmt.Sprintf(`holdfast_releases_total{name="orders/*",outcome="released"} %d`, clients*pairs),
		`holdfast_held{mode="exclusive",name="orders/*"} 0`)
}
