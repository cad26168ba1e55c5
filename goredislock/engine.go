package goredislock

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/doctor"
	"github.com/holdfast-locks/holdfast/rediscore/member"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
)

// An Engine keeps locks in one Redis, Valkey, or Redis Cluster. Use New to make
// one.
type Engine struct{ *rediscore.Engine }

var _ driver.Diagnoser = (*Engine)(nil)

// Options configure New; see rediscore.Options.
type Options = rediscore.Options

// New returns an engine on a client, which stays the caller's: whoever has made it
// closes it, after the engine. It does not block: an unreachable server and a
// client that is closed show with the first call.
//
// The client is what redis.NewClient, redis.NewFailoverClient or
// redis.NewClusterClient returns, or redis.NewUniversalClient when that is one of
// these. What cannot keep locks is ErrInvalid:
//
//   - nil, and clients of other types: the engine has to know how the servers
//     belong together.
//   - A Ring: which of its servers has a name depends on which of them the client
//     reaches, so two clients could both get a lock.
//   - A cluster client whose slots a function names, as that of
//     redis.NewFailoverClusterClient: the servers do not correct it when it asks
//     the wrong one, and it may read from replicas.
//   - A client without a ReadTimeout: a connection that goes silent would be
//     waited for without end, and so would be the next, until there is none left.
//   - Options that are out of range.
func New(client redis.UniversalClient, opts *Options) (*Engine, error) {
	c, err := newConn(client)
	if err != nil {
		return nil, err
	}
	if opts != nil {
		if err := opts.Check(); err != nil {
			return nil, err
		}
	}
	return &Engine{rediscore.New(c, opts)}, nil
}

// Capabilities implements driver.Engine.
func (e *Engine) Capabilities() driver.Capabilities {
	c := e.Engine.Capabilities()
	c.Diagnose = true
	return c
}

// Diagnose implements driver.Diagnoser; see doctor.Diagnose. It looks at the
// servers that the client uses: sentinels, and the replicas behind them, are
// left out.
func (e *Engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	return doctor.Diagnose(ctx, e.Engine, req, doctor.Way{})
}

// The guard for resources in Redis; see package redisfence.
type (
	Guard        = redisfence.Guard
	GuardOptions = redisfence.Options
	Script       = redisfence.Script
	ScriptError  = redisfence.ScriptError
)

// Guard returns a guard for resources in the store of the engine, on the
// engine's client. Its calls fail with ErrClosed after Close.
func (e *Engine) Guard(opts *GuardOptions) *Guard { return redisfence.New(e.Engine, opts) }

// NewGuard returns a guard on a client, which the caller closes. It does not
// block. It refuses what New refuses; a bad option makes every call fail with
// ErrInvalid.
func NewGuard(client redis.UniversalClient, opts *GuardOptions) (*Guard, error) {
	c, err := newConn(client)
	if err != nil {
		return nil, err
	}
	return redisfence.New(rediscore.NewUnclosed(c, nil), opts), nil
}

// NewScript prepares the body of a script for Guard.Run; see
// redisfence.NewScript.
func NewScript(body string) *Script { return redisfence.NewScript(body) }

// A Member is one Redis or Valkey server as a member of a quorum.
type Member = member.Member

// NewMember returns a member on an engine's server. Close closes the engine.
func NewMember(e *Engine) *Member { return member.On(e.Engine) }
