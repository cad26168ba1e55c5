package stores

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// Dial opens the store at rawURL and returns a client of it, which owns the engine: Close
// or Shutdown of the client ends both. The package documentation has the forms of the URL.
// Nil options are the defaults. The context bounds Dial only.
//
// There is no default for the URL, because two processes with different stores both get the
// lock. A URL that is empty, malformed or of a kind that this version does not know is
// holdfast.ErrInvalid, and so are options that are out of range, or that set SharedEngine. A
// server that cannot be reached is holdfast.ErrUnavailable; a quorum is opened even if none of
// its servers is there, and its requests fail then. A store that refuses this user is
// holdfast.ErrPermission. After an error nothing is open. No error contains a password.
func Dial(ctx context.Context, rawURL string, opts *holdfast.Options) (*holdfast.Client, error) {
	if opts != nil && opts.SharedEngine {
		return nil, fmt.Errorf("%w SharedEngine: no other client has the engine that Dial opens: use Open and holdfast.New", driver.ErrInvalid)
	}
	engine, err := Open(ctx, rawURL)
	if err != nil {
		return nil, err
	}
	client, err := holdfast.New(engine, opts)
	if err != nil {
		_ = engine.Close()
		return nil, err
	}
	return client, nil
}
