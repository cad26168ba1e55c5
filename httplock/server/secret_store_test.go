package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// secretOf returns the secret of a new server on engine.
func secretOf(t *testing.T, engine driver.Engine) *secret {
	t.Helper()
	c, err := holdfast.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := newSecret(c, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *secret) must(t *testing.T) []byte {
	t.Helper()
	value, err := s.get(t.Context())
	if err != nil || len(value) != leastSecret {
		t.Errorf("the secret has %d bytes: %v", len(value), err)
	}
	return value
}

// TestSecretIsShared checks that servers that start at the same time share one secret, and that a
// server restores the secret in a store that has lost it.
func TestSecretIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		servers := []*secret{secretOf(t, engine), secretOf(t, engine), secretOf(t, engine)}
		values := make(chan []byte, 3*len(servers))
		var all sync.WaitGroup
		for _, s := range servers {
			for range cap(values) / len(servers) {
				all.Go(func() { values <- s.must(t) })
			}
		}
		all.Wait()
		value := <-values
		for range len(values) {
			if !bytes.Equal(<-values, value) {
				t.Fatal("two servers of a store have two secrets")
			}
		}
		if found, err := engine.Forget(t.Context(), secretName); !found || err != nil {
			t.Fatalf("the store has forgotten it: %v, %v", found, err)
		}
		time.Sleep(secretLook + time.Second)
		servers[1].must(t)
		if v := secretOf(t, engine).must(t); !bytes.Equal(v, value) {
			t.Error("after the store has lost the secret, a new server has another one")
		}
	})
}

// TestSecretDuringAnOutage checks that a server that has read the secret keeps it during an outage
// of the store. A server that has not read it gets an error.
func TestSecretDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := false
		engine := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
			if away {
				return driver.ErrUnavailable
			}
			return send()
		}}
		s := secretOf(t, engine)
		away = true
		if v, err := s.get(t.Context()); !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("while the store is away there is a secret of %d bytes, %v", len(v), err)
		}
		away = false
		value := s.must(t)
		away = true
		time.Sleep(2 * secretLook)
		if !bytes.Equal(s.must(t), value) {
			t.Error("an outage changes the secret")
		}
	})
}

// TestSecretWithoutRecords checks that a server whose store has no records makes its own secret,
// and logs this.
func TestSecretWithoutRecords(t *testing.T) {
	c, err := holdfast.New(driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{Records: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := newSecret(c, nil, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := s.must(t), s.must(t); !bytes.Equal(a, b) || !bytes.Contains(log.Bytes(), []byte("Options.Secret")) || bytes.Contains(log.Bytes(), a) {
		t.Errorf("two secrets of one server, or no warning: %s", log.Bytes())
	}
	if _, err := newSecret(c, make([]byte, leastSecret-1), slog.Default()); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a short secret: %v, want ErrInvalid", err)
	}
}

// TestSecretIsNotAllowed checks that a server whose store refuses to keep the secret makes its own
// secret, and logs this once. Another server is such a store.
func TestSecretIsNotAllowed(t *testing.T) {
	engine := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(context.Context, hook.Request, func() error) error {
		return driver.ErrPermission
	}}
	var log bytes.Buffer
	s := secretOf(t, engine)
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	if a, b := s.must(t), s.must(t); !bytes.Equal(a, b) || strings.Count(log.String(), "--secret-file") != 1 || bytes.Contains(log.Bytes(), a) {
		t.Errorf("two secrets of one server, or not one warning: %s", log.Bytes())
	}
}
