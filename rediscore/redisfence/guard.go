// Package redisfence guards keys in Redis and Valkey: it refuses the requests of a holder with a
// stale token.
//
//	guard.go           Guard: Advance, Set, Delete
//	script.go          Script: what a holder runs under the guard; the reply
//	guard.lua          checks the claim, raises the mark, runs a body
//	guard_*.lua        the bodies of Set and Delete
package redisfence

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// A Guard changes keys in Redis or Valkey for lease holders, and refuses a holder whose token is
// stale. The check and the change are one script call: nothing comes between them.
//
// The resource is a key of any type. The guard stores its mark in another key: the greatest token
// that it has seen, with the lease ID. A claim is accepted if its token is greater than the mark,
// or equal with the same lease ID; it then becomes the mark. A stale claim gets a
// *[fence.StaleError] and changes nothing.
//
// A client that reads a resource before it writes must call Advance before it
// reads, or do both in one Script: a check on write alone loses updates. Read
// from the master; a replica may be behind.
//
// The mark lives as long as the resource, and for driver.TokenMemory after the resource was deleted
// or expired. That holds as long as programs create and delete the resource, and change its TTL,
// through a Guard. If the resource and its lock are in one database under one prefix, the resource
// must not have the lock's name: both would be the same key. Such a call is refused with
// ErrInvalid.
//
// If a method returns an error that wraps driver.ErrUnavailable, ErrInvalid, ErrPermission,
// ErrKindMismatch or ErrClosed, the resource is unchanged; the mark may have been raised. After any
// other error but a StaleError the outcome is unknown. The same holder may then repeat the call. If
// the repeat is refused as stale, the first call may still have been carried out.
//
// A Guard is safe for concurrent use. It needs no Close.
type Guard struct {
	store   *rediscore.Store // sends the requests
	keys    keys.Space
	reports *fence.Reporter

	advance, set, delete *Script
}

// Options configure a Guard. Nil is default; a zero field is default.
type Options struct {
	// Prefix comes before every key, as in rediscore.Options. Default: none, even if the locks have
	// a prefix.
	Prefix string

	// Observer receives each claim that was accepted or refused. Default: none.
	Observer observe.Observer
}

// New returns a guard for resources in the store of an engine of package redislock or goredislock,
// on the engine's connection. If the engine is another one or an option is bad, the error wraps
// driver.ErrInvalid. New does not block. After the engine's Close all calls of the guard fail with
// ErrClosed.
func New(e driver.Engine, opts *Options) (*Guard, error) {
	inRedis, ok := e.(interface{ InRedis() *rediscore.Engine })
	if !ok {
		return nil, fmt.Errorf("%w engine: %T has no keys in Redis: want one of package redislock or goredislock", driver.ErrInvalid, e)
	}
	o := cmp.Or(opts, &Options{})
	space, err := keys.New(o.Prefix)
	if err != nil {
		return nil, err
	}
	return &Guard{
		store: inRedis.InRedis().Store(), keys: space, reports: fence.NewReporter(o.Observer),
		advance: NewScript(""), set: NewScript(guardSetLua), delete: NewScript(guardDeleteLua),
	}, nil
}

var (
	//go:embed guard.lua
	guardLua string
	//go:embed guard_set.lua
	guardSetLua string
	//go:embed guard_delete.lua
	guardDeleteLua string
)

// Advance makes the resource store the claim's token. When it has returned nil, no earlier holder
// can change the resource any more. So a value that is read after that stays current until a later
// holder advances. The resource need not exist. Advance may be repeated.
func (g *Guard) Advance(ctx context.Context, resource string, c fence.Claim) error {
	_, err := g.run(ctx, g.advance, resource, c, nil, nil)
	return single(resource, err)
}

// Set gives the resource a string value, as SET does. With a positive ttl, rounded up to a
// millisecond, the resource expires. With 0 it does not, even if it had a TTL before. Set also
// advances.
func (g *Guard) Set(ctx context.Context, resource string, c fence.Claim, value string, ttl time.Duration) error {
	if ttl < 0 {
		return guardError(resource, fmt.Errorf("%w TTL: %s is negative; want 0 for none", driver.ErrInvalid, ttl))
	}
	if rest := ttl % time.Millisecond; rest > 0 {
		ttl += time.Millisecond - rest
	}
	_, err := g.run(ctx, g.set, resource, c, nil, []string{value, form.MS(ttl)})
	return single(resource, err)
}

// Delete removes the resource, whatever its type. It is not an error if the resource does not
// exist. The mark remains for driver.TokenMemory. Delete also advances.
func (g *Guard) Delete(ctx context.Context, resource string, c fence.Claim) error {
	_, err := g.run(ctx, g.delete, resource, c, nil, nil)
	return single(resource, err)
}

// single converts the error of a body that is a single command. Unlike a Script, such a body has
// changed nothing if it fails.
func single(resource string, err error) error {
	var failed *ScriptError
	if errors.As(err, &failed) {
		return guardError(resource, rediscore.ReplyError(failed.Text))
	}
	return err
}

// run runs the script if the claim is not stale, and reports the claim to the observer.
func (g *Guard) run(ctx context.Context, s *Script, resource string, c fence.Claim, others, args []string) (any, error) {
	if err := g.enter(ctx, resource, c, others); err != nil {
		return nil, guardError(resource, err)
	}
	allKeys := []string{g.keys.Lock(resource), g.keys.Key(keys.Mark, resource)}
	for _, key := range others {
		allKeys = append(allKeys, g.keys.Lock(key))
	}
	allArgs := append([]string{
		form.Token(c.Token()), string(c.ID()), form.MS(driver.TokenMemory),
	}, args...)
	reply, err := g.store.Eval(ctx, s.lua, allKeys, allArgs)
	if err != nil {
		return nil, guardError(resource, err)
	}
	answer, err := parseGuard(reply)
	if err != nil {
		return nil, guardError(resource, err)
	}
	if answer.stale {
		err = &fence.StaleError{Resource: resource, Token: c.Token(), Current: answer.current}
	}
	g.reports.Report(ctx, resource, c, err)
	switch {
	case err != nil:
		return nil, err
	case answer.failed != nil:
		return nil, guardError(resource, answer.failed)
	}
	return answer.value, nil
}

// enter returns an error if the guard must not send the request.
func (g *Guard) enter(ctx context.Context, resource string, c fence.Claim, others []string) error {
	if err := g.store.Enter(ctx, resource); err != nil {
		return err
	}
	for _, key := range append([]string{resource}, others...) {
		if err := driver.CheckName(key); err != nil {
			return fmt.Errorf("key %.40q: %w", key, err)
		}
		if err := g.keys.Check(key); err != nil {
			return fmt.Errorf("key %.40q: %w", key, err)
		}
		if g.store.Conn().Mode() == rediscore.InCluster && keys.Slot(g.keys.Lock(key)) != keys.Slot(g.keys.Lock(resource)) {
			return fmt.Errorf("%w key %.40q: it is not in the resource's slot; give both the same hash tag", driver.ErrInvalid, key)
		}
	}
	if c == nil {
		return fmt.Errorf("%w claim: it is nil", driver.ErrInvalid)
	}
	// INVARIANT I2: only tokens in this range are exact in the script.
	if token := c.Token(); token == 0 || token > driver.MaxToken {
		return fmt.Errorf("%w token %d: want 1 to %d", driver.ErrInvalid, token, driver.MaxToken)
	}
	if id := c.ID(); id != "" && !id.Valid() {
		return fmt.Errorf("%w lease ID: want 32 lower-case hexadecimal digits or nothing", driver.ErrInvalid)
	}
	return nil
}

// guardError adds the resource to an error.
func guardError(resource string, err error) error {
	return fmt.Errorf("redisfence: resource %.40q: %w", resource, err)
}
