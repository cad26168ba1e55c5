package onetime

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/tell"
)

// A Service issues and redeems the one-time tokens of one collection. Make one
// with New and share it.
type Service struct {
	client   *holdfast.Client
	vault    driver.Vault
	opts     Options
	isPruned bool // by us, because the store does not forget by itself
	failures failures
	events   tell.Queue // for the Observer

	// background ends when Close begins; the pruner runs on it.
	background context.Context
	stop       context.CancelFunc
	pruner     chan struct{} // closed when the pruner has ended

	mu      sync.Mutex // guards started, and that it is not set once Close has begun
	started bool       // the pruner was started
}

// New returns a service on the store that the client's engine is open on. It
// sends nothing and starts nothing. It returns an error that wraps
// holdfast.ErrUnsupported if the engine keeps no one-time tokens, and
// holdfast.ErrInvalid if an option is out of range.
//
// The caller must Close the service, before the client.
func New(client *holdfast.Client, opts *Options) (*Service, error) {
	o, err := opts.resolve()
	if err != nil {
		return nil, opError("new service", "", err)
	}
	if client == nil {
		return nil, opError("new service", "", fmt.Errorf("%w client: it is nil", holdfast.ErrInvalid))
	}
	features := client.Features()
	vault := features.Vault
	if vault == nil {
		return nil, opError("new service", "", fmt.Errorf("keeping one-time tokens is %w", holdfast.ErrUnsupported))
	}
	isPruned := !vault.SelfPruning()
	if isPruned && !features.Shared {
		return nil, opError("new service", "", fmt.Errorf("pruning needs shared locks, and shared mode is %w", holdfast.ErrUnsupported))
	}
	background, stop := context.WithCancel(context.Background())
	s := &Service{
		client: client, vault: vault, opts: o, isPruned: isPruned,
		failures:   failures{limit: o.Failures, callers: map[callerKey]*caller{}},
		background: background, stop: stop, pruner: make(chan struct{}),
	}
	s.events.Init(o.Observer, nil)
	return s, nil
}

// Close makes new calls fail with holdfast.ErrClosed, ends the pruner, and waits until
// it has ended and the Observer has all events. If ctx ends before, Close returns an error
// that wraps ctx's, but none for an Observer that blocks. Calls under way go on. It does
// not close the client. A second Close waits again.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.stop()
	started := s.started
	s.mu.Unlock()
	if started {
		select {
		case <-s.pruner:
		case <-ctx.Done():
			return opError("close", "", fmt.Errorf("a round of pruning is still ending: %w", ask.ContextError(ctx)))
		}
	}
	s.events.Wait(ctx, s.opts.RequestTimeout)
	return nil
}

// open fails if the service was closed.
func (s *Service) open() error {
	if s.background.Err() != nil {
		return fmt.Errorf("the service was %w", holdfast.ErrClosed)
	}
	return nil
}

// Start starts the pruning of a store that does not forget by itself, before the first Issue
// or Redeem would. It is for a program that must prune even if it has no requests. It sends
// nothing yet. The error is holdfast.ErrClosed.
func (s *Service) Start() error {
	if err := s.begin(); err != nil {
		return opError("start", "", err)
	}
	return nil
}

// begin does as open, and starts the pruner: it is for calls after which there may be something
// to prune.
func (s *Service) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	if s.isPruned && !s.started {
		s.started = true
		go s.pruneRegularly()
	}
	return nil
}

// ID returns the name under which the store, events and errors know the token:
// 64 hexadecimal digits that reveal nothing of the secret. Keep it instead of
// the secret, for RevokeID and to find the token in logs. The error is
// ErrMalformed.
func (s *Service) ID(secret string) (string, error) {
	random, err := parse(secret)
	if err != nil {
		return "", opError("name token", "", err)
	}
	return string(proof(s.opts.Name, random).Digest()), nil
}
