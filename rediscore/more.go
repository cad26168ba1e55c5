package rediscore

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// more is the reply of a script that had no room for all that was to be done:
// its request was not looked at yet, or not carried out to the end. The same
// call goes on where that one stopped, from any client.
const more = int64(-6)

// execAll runs a script until it has done all that there was to do, and
// returns the last reply. INVARIANT I7: a request is refused only when nothing
// else was left to do.
func (e *engine) execAll(ctx context.Context, script *lua.Script, keys, args []string) (any, error) {
	for {
		reply, err := e.store.Eval(ctx, script, keys, args)
		if err != nil || !isMore(reply) {
			return reply, err
		}
	}
}

// isMore reports whether a reply requires another call.
func isMore(reply any) bool {
	if items, ok := reply.([]any); ok && len(items) == 1 {
		reply = items[0]
	}
	return reply == more
}

// halfDone is the error of a request of which only the last part failed: so
// err, which may mean that nothing was done, is not wrapped.
func halfDone(what string, err error) error {
	return fmt.Errorf("%s, but perhaps not everybody who waits was told: %s", what, err) //nolint:errorlint // see above
}
