package redislock

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/doctor"
	"github.com/holdfast-locks/holdfast/rediscore/member"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
)

// An Engine keeps locks in one Redis, Valkey, or Redis Cluster. Use
// Open or New to make one.
type Engine struct{ *rediscore.Engine }

var _ driver.Diagnoser = (*Engine)(nil)

// Options configure New; see rediscore.Options.
type Options = rediscore.Options

// New returns an engine on an existing client, which the caller closes after
// the engine. The client may be of any kind that rueidis makes; one with
// replicas must not send scripts to them. It does not block: an unreachable
// server shows with the first call, and so does a bad option, or nil for the client,
// which make every call fail with ErrInvalid. Once the client is closed the outcome of
// every call is unknown: rueidis says the same then of what was under way.
//
// How soon a dead connection is noticed is the client's business. These options
// of rueidis matter to locks, and Open sets them, or does better:
//
//   - DisableRetry and AlwaysPipelining true, PipelineMultiplex -1.
//   - ConnWriteTimeout: a connection that has been silent for this long is made
//     anew. A third of the shortest TTL, less a second; the default is 10 s.
//   - Sentinel.Dialer, with a Timeout and a KeepAlive of a second or so. It is
//     not taken from Dialer, and without it a sentinel whose machine vanishes is
//     never missed: the client does not hear of the failover.
//   - ClusterOption.MaxMovedRedirections: 4 or so. Without it nodes that
//     disagree send a request to and fro until its context ends.
func New(client rueidis.Client, opts *Options) *Engine {
	return &Engine{rediscore.New(callers(client), opts)}
}

// Capabilities implements driver.Engine.
func (e *Engine) Capabilities() driver.Capabilities {
	c := e.Engine.Capabilities()
	c.Diagnose = true
	return c
}

// Diagnose implements driver.Diagnoser; see doctor.Diagnose.
func (e *Engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	var way doctor.Way
	if req.URL != "" {
		opts, _, err := parseURL(req.URL)
		if err != nil {
			return driver.Diagnosis{}, err
		}
		way.Sentinels, way.Master = opts.InitAddress, opts.Sentinel.MasterSet
		way.Dial = func(ctx context.Context, addr string, sentinel bool) (rediscore.Conn, error) {
			return dialOne(ctx, opts, addr, sentinel)
		}
	}
	return doctor.Diagnose(ctx, e.Engine, req, way)
}

// The guard for resources in Redis; see package redisfence.
type (
	Guard        = redisfence.Guard
	GuardOptions = redisfence.Options
	Script       = redisfence.Script
	ScriptError  = redisfence.ScriptError
)

// Guard returns a guard for resources in the store of the engine, on the
// engine's connection. Its calls fail with ErrClosed after Close.
func (e *Engine) Guard(opts *GuardOptions) *Guard { return redisfence.New(e.Engine, opts) }

// NewGuard returns a guard on an existing client, which the caller closes. It
// does not block; a bad option makes every call fail with ErrInvalid.
func NewGuard(client rueidis.Client, opts *GuardOptions) *Guard {
	return redisfence.New(rediscore.NewUnclosed(callers(client), nil), opts)
}

// NewScript prepares the body of a script for Guard.Run; see
// redisfence.NewScript.
func NewScript(body string) *Script { return redisfence.NewScript(body) }

// A Member is one Redis or Valkey server as a member of a quorum.
type Member = member.Member

// OpenMember returns a member on the server of a URL, as Open takes it. It does
// not wait for the server: one that cannot be reached makes requests fail with
// ErrUnavailable until it can, so that a quorum can be used while some of its
// members are down. A URL of another form is ErrInvalid, and so is one with
// token_memory: the members of a quorum remember tokens for driver.TokenMemory.
func OpenMember(rawURL string) (*Member, error) {
	opts, set, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if set.TokenMemory != 0 {
		return nil, fmt.Errorf("%w redis URL: token_memory is not for a quorum, whose members remember tokens for %s", driver.ErrInvalid, driver.TokenMemory)
	}
	open := func(ctx context.Context) (*rediscore.Engine, error) {
		e, err := Open(ctx, rawURL)
		if err != nil {
			return nil, err
		}
		return e.Engine, nil
	}
	return member.New(strings.Join(opts.InitAddress, ","), open), nil
}

// NewMember returns a member on an engine's server. Close closes the engine.
func NewMember(e *Engine) *Member { return member.On(e.Engine) }
