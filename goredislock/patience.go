package goredislock

import (
	"context"
	"errors"
	"time"
)

// errNoConnection ends the wait for a connection.
var errNoConnection = errors.New("no connection of the client's pool became free, or could be made, in half of the request's time: raise PoolSize, or give the locks a client of their own")

// patience returns a context for a request that ends after half of ctx's time.
// go-redis looks at the end of a context, other than at its deadline, only as long
// as it has no connection. So a request that waits for the pool fails early enough for a
// retry, and requests that are under way go on.
func patience(ctx context.Context) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return ctx, func() {}
	}
	patient, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(time.Until(end)/2, func() { cancel(errNoConnection) })
	return patient, func() {
		timer.Stop()
		cancel(nil)
	}
}
