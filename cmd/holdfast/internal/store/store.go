// Package store determines which store a command uses, from flags, environment and configuration
// files. Package stores opens the store of a URL.
package store

import (
	"context"
	"fmt"
	"os"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/sqlitelock"
	"github.com/holdfast-locks/holdfast/stores"
)

// Open opens the store, and makes the directory of the user's own store. See stores.Open for the
// errors.
func (c Choice) Open(ctx context.Context) (driver.Engine, error) {
	if c.Dir != "" {
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("%w: the directory of your own store: %w; name another with --store", driver.ErrInvalid, err)
		}
	}
	if c.System {
		engine, err := sqlitelock.OpenURL(ctx, c.URL, &sqlitelock.Options{System: true})
		if err != nil {
			return nil, err
		}
		return engine, nil
	}
	return stores.Open(ctx, c.URL)
}

// IsNew reports whether opening the store has created its file.
func IsNew(engine driver.Engine) bool {
	file, ok := engine.(*sqlitelock.Engine)
	return ok && file.Created()
}

// Quorum returns the store as a quorum, if it is one.
func Quorum(engine driver.Engine) (*quorumlock.Engine, bool) {
	quorum, ok := engine.(*quorumlock.Engine)
	return quorum, ok
}
