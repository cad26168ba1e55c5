package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

const (
	leastSecret = 32 // bytes

	// secretName is the do-once key under which the servers of a store keep their secret.
	secretName = "holdfast@server/secret"

	// secretLook is how often a server checks that the store has the secret. It restores a
	// lost secret, so that a server that starts later has the same one.
	secretLook = time.Minute

	// secretPatience is how long a request waits for a secret that another server draws.
	secretPatience = 5 * time.Second
)

// A secret is the key of lease IDs, which all servers of a store share. The server that
// needs it first draws it, as do-once work.
type secret struct {
	client *holdfast.Client
	log    *slog.Logger
	fixed  bool // value was given, or the store keeps none

	looking chan struct{} // has room for the goroutine that reads the store
	mu      sync.Mutex    // guards the rest
	value   []byte
	looked  time.Time
}

func newSecret(client *holdfast.Client, given []byte, log *slog.Logger) (*secret, error) {
	s := &secret{client: client, log: log, value: given, fixed: given != nil, looking: make(chan struct{}, 1)}
	switch {
	case s.fixed && len(given) < leastSecret:
		return nil, fmt.Errorf("%w Options.Secret: it has %d bytes, want %d or more", driver.ErrInvalid, len(given), leastSecret)
	case !s.fixed && client.Features().Recorder == nil:
		s.alone()
	}
	return s, nil
}

// alone draws a secret for this server only.
func (s *secret) alone() {
	s.value, s.fixed = drawn(), true
	s.log.Warn("the store keeps no secret for its servers: a request that is repeated at another server is not a repeat; give them all the same one, by --secret-file or Options.Secret")
}

func drawn() []byte {
	b := make([]byte, leastSecret)
	rand.Read(b) // never fails
	return b
}

// get returns the secret. It reads the store the first time, and again every secretLook. A
// store that does not answer later does no harm.
func (s *secret) get(ctx context.Context) ([]byte, error) {
	value, fresh := s.present()
	if fresh {
		return value, nil
	}
	select {
	case s.looking <- struct{}{}:
	default: // another goroutine reads the store
		if value != nil {
			return value, nil
		}
		select {
		case s.looking <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-s.looking }()
	if value, fresh = s.present(); fresh {
		return value, nil
	}
	stored, err := s.stored(ctx, value)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.value, s.looked = stored, time.Now()
	case value != nil:
		s.looked = time.Now()
	case errors.Is(err, driver.ErrPermission): // the store may be another server
		s.alone()
	default:
		return nil, err
	}
	return s.value, nil
}

// present returns the known secret, and whether it is fresh.
func (s *secret) present() (value []byte, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, s.fixed || s.value != nil && time.Since(s.looked) < secretLook
}

// stored returns the secret of the store. If the store has none, stored keeps value there, or a
// new secret if value is nil.
func (s *secret) stored(ctx context.Context, value []byte) ([]byte, error) {
	opts := &holdfast.OnceOptions{
		TTL: secretPatience, Await: secretPatience, Retention: holdfast.MaxRetention,
		Reason: "draw the secret of the servers",
	}
	if value == nil {
		value = drawn()
	}
	r, err := s.client.Once(ctx, secretName, opts, func(context.Context, *holdfast.Lease) ([]byte, error) { return value, nil })
	if err == nil && len(r.Value) < leastSecret {
		err = fmt.Errorf("%w: %q has %d bytes, and is not of a server: forget the key", driver.ErrKindMismatch, secretName, len(r.Value))
	}
	return r.Value, err
}
