package fault

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
)

// A Severed is an engine that can be cut off from its store for good, as if its process had died.
// Only its client notices. Requests that only read the store still get replies.
type Severed struct {
	hook.Engine
	off atomic.Bool
}

// Sever returns an engine that works on inner until it is cut off. Close does
// not close inner.
func Sever(inner driver.Engine) *Severed {
	s := &Severed{}
	s.Engine = hook.Engine{Forward: driver.Forward{Engine: inner}, Each: s.each}
	return s
}

// Cut cuts the engine off.
func (s *Severed) Cut() { s.off.Store(true) }

// IsCut reports whether the engine is cut off.
func (s *Severed) IsCut() bool { return s.off.Load() }

var errCut = fmt.Errorf("%w: cut off", driver.ErrUnavailable)

func (s *Severed) each(_ context.Context, req hook.Request, send func() error) error {
	if !req.Looks && s.off.Load() {
		return errCut
	}
	return send()
}

// Close does nothing: inner stays open.
func (s *Severed) Close() error { return nil }
