package stores

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast"
)

// TestDial checks that closing the client closes its engine.
func TestDial(t *testing.T) {
	rawURL := "sqlite://" + filepath.Join(t.TempDir(), "locks.db")
	for _, end := range []func(*holdfast.Client) error{
		(*holdfast.Client).Close, func(c *holdfast.Client) error { return c.Shutdown(t.Context()) },
	} {
		client, err := Dial(t.Context(), rawURL, &holdfast.Options{Holder: holdfast.Holder{Label: "dialled"}})
		if err != nil {
			t.Fatal(err)
		}
		err = client.Do(t.Context(), "job", nil, func(ctx context.Context, l *holdfast.Lease) error {
			lock, err := client.Inspect(ctx, "job")
			if err == nil && (len(lock.Holders) != 1 || lock.Holders[0].Holder.Label != "dialled") {
				t.Errorf("the options were not used: %+v", lock)
			}
			return err
		})
		if err := errors.Join(err, end(client)); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Inspect(t.Context(), "job"); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("the engine is open: %v", err)
		}
	}
}

// TestDialRefuses checks that Dial refuses wrong options as New does, and wrong stores as Open
// does.
func TestDialRefuses(t *testing.T) {
	for _, c := range []struct {
		rawURL string
		opts   *holdfast.Options
		says   string
	}{
		{"", nil, "its URL is empty: use sqlite:"},
		{"/tmp/locks.db", nil, "it is not a URL"},
		{"memory:", &holdfast.Options{TTL: 1}, "TTL"},
		{"memory:", &holdfast.Options{SharedEngine: true}, "SharedEngine"},
	} {
		client, err := Dial(t.Context(), c.rawURL, c.opts)
		if client != nil || !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Dial(%q, %+v) = %v, %v", c.rawURL, c.opts, client, err)
		}
	}
}
