package memlock

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// An Engine is a store and its only connection. Use New to make one; two
// engines share nothing.
type Engine struct{ *engine }

// engine has the methods of package driver. Its name is unexported, so that go doc shows
// only the methods that programs call.
type engine = mem.Engine

var _ driver.Engine = (*Engine)(nil)

// Options configure New. A zero field is the default.
type Options struct {
	// History keeps the latest events of each name, and publishes new ones. Default:
	// no events.
	History bool
}

// New returns an engine with an empty store. Nil options are the defaults.
func New(opts *Options) (*Engine, error) {
	return &Engine{mem.New((*mem.Options)(opts))}, nil
}

// Close ends the engine and its store. Clients that still hold leases lose them at their deadlines.
func (e *Engine) Close() error { return e.engine.Close() }
