package rediscore

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// waitLongest bounds the wait for replicas if ctx has no deadline.
const waitLongest = 5 * time.Second

// waitStep is how long the server waits for replicas before it replies. It is less than the time
// after which a client gives up a silent connection.
const waitStep = 250 * time.Millisecond

// acquireReplicated runs the acquire script and then waits for replicas. WAIT counts the writes of
// its own connection and blocks it, so both use a connection that no other request uses meanwhile.
func (e *engine) acquireReplicated(ctx context.Context, req driver.AcquireRequest, keys, args []string) (reply any, acked int, err error) {
	session, err := e.store.conn.Dedicate(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err == nil {
			session.GiveBack()
		} else {
			session.Close() // a request may be in flight on it
		}
	}()
	for reply = more; isMore(reply) && err == nil; {
		reply, err = e.store.ask(ctx, func() (any, error) { return eval(ctx, session, e.scripts.Acquire, keys, args) })
	}
	if err != nil || !isGranted(reply) {
		return reply, 0, err
	}
	acked, err = e.wait(ctx, session, req.Replicas, waitFor(ctx, req.TTL))
	if err != nil {
		// Not wrapped: the lease is granted, and err may mean that nothing was done.
		return nil, 0, fmt.Errorf("granted, but the number of replicas that have it is unknown: %s", err) //nolint:errorlint // see above
	}
	return reply, acked, nil
}

// wait returns how many replicas have the writes of session, once there are enough or the limit has
// passed. It waits in small steps, because a client gives up a connection that is silent for
// longer.
func (e *engine) wait(ctx context.Context, session Session, enough int, limit time.Duration) (int, error) {
	for end := time.Now().Add(limit); ; {
		step := min(waitStep, max(time.Until(end), time.Millisecond))
		acked, err := e.store.ask(ctx, func() (any, error) { return session.Wait(ctx, enough, step) })
		if err != nil {
			return 0, err
		}
		if n := acked.(int); n >= enough || !time.Now().Before(end) {
			return n, nil
		}
	}
}

// waitFor returns how long to wait for replicas: less than the rest of ctx, so that their number
// can be returned, and at most half of the lease, which has begun.
func waitFor(ctx context.Context, ttl time.Duration) time.Duration {
	wait := min(waitLongest, ttl/2)
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)*4/5)
	}
	return max(wait, time.Millisecond)
}

func isGranted(reply any) bool {
	var outcome, token int64
	return form.Read(reply, &outcome, &token) && outcome == 1
}
