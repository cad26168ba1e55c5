package httplock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Options configure Open. A zero field is default.
type Options struct {
	// Token authenticates the program to the servers. It is sent as Authorization:
	// Bearer. Default: the token in the URL, or none.
	Token string

	// TLS is for the connections of https. Default: the authorities of the system, or
	// those in the file that ca_file of the URL names.
	TLS *tls.Config

	// Dial makes the connections. Default: as net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Open returns an engine for the locks of the servers of a URL, which must all have the
// same store. It reads the store's capabilities from one of them. The caller must Close
// the engine.
//
// The forms are http://host:port and https://host:port, with several hosts as
// host1:port,host2:port, and http+unix:///run/holdfast.sock. A token precedes
// the host, as in https://:TOKEN@host. The parameter ca_file names a file of certificates
// of the authorities to trust, instead of the system's.
//
// A URL that is wrong is driver.ErrInvalid. If no server can be reached the error is
// driver.ErrUnavailable, and driver.ErrPermission if the server does not know the token.
// No error contains the token.
//
// Nil options are the defaults.
func Open(ctx context.Context, rawURL string, opts *Options) (*Engine, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	e := &engine{id: string(lockinfo.NewLeaseID()), began: time.Now(), routes: routes{of: map[string]uint32{}}}
	e.life, e.end = context.WithCancel(context.Background())
	e.conns = conns{o.Dial, e.life}
	e.notices.engine = e
	all, err := serversOf(rawURL, &o)
	if err != nil {
		e.end()
		return nil, err
	}
	for _, a := range all {
		e.servers = append(e.servers, e.newServer(a))
	}
	e.current.Store(rand.Int64N(int64(len(e.servers)))) // the servers share the work
	f, _, err := call[form.Capabilities](ctx, e, form.Capable, form.Nothing{})
	if err != nil {
		_ = e.Close() // always nil
		return nil, openError(ctx, err)
	}
	e.capable, e.selfPruning = f.Capabilities, f.SelfPruning
	return &Engine{e}, nil
}

// openError returns the error of Open. The request changes nothing, so an unknown outcome
// is ErrUnavailable.
func openError(ctx context.Context, err error) error {
	if driver.Definite(err) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
}
