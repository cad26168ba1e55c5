package redisfence

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A Script is Lua code that a Guard runs for a holder whose token is not stale. It is safe for
// concurrent use.
type Script struct{ lua *lua.Script }

// NewScript prepares the body of a script, in the Lua of the server. KEYS[1] is the resource's key,
// and the keys given to Run follow it. ARGV has the arguments given to Run. The guard's own keys
// and arguments are hidden. The body may return a value. It must not begin with a shebang line.
// Prepare a script once and keep it: its text is sent only to a server that does not know it.
//
// An empty body only advances.
func NewScript(body string) *Script {
	// The wrapper shares the body's first line, so that the server's errors have the body's line
	// numbers.
	return &Script{lua.New("local function body(KEYS, ARGV) " + body + "\nend\n" + guardLua)}
}

// Run runs the script if the claim is not stale, and returns its value: an int64, a string, nil, or
// a []any of these. The check and the script are one atomic step. keys must have every key that the
// script uses; in a Redis Cluster all must be in the slot of the resource.
//
// If the script raises or returns an error, Run returns a *ScriptError. The server does not undo
// what the script wrote before that.
func (g *Guard) Run(ctx context.Context, s *Script, resource string, c fence.Claim, keys, args []string) (any, error) {
	return g.run(ctx, s, resource, c, keys, args)
}

// A ScriptError is an error that a Script raised or returned.
type ScriptError struct {
	Text string // the server's text
}

func (e *ScriptError) Error() string {
	return fmt.Sprintf("the script failed; what it wrote before stays: %s", e.Text)
}

// A guardAnswer is the parsed reply of guard.lua.
type guardAnswer struct {
	stale   bool
	current uint64       // if stale: the mark
	value   any          // if not stale: the body's value
	failed  *ScriptError // if not stale: the body's error, or nil
}

// parseGuard reads the reply of guard.lua.
func parseGuard(reply any) (guardAnswer, error) {
	var outcome int64
	var second any
	if !form.Read(reply, &outcome) && !form.Read(reply, &outcome, &second) {
		return guardAnswer{}, form.Malformed("the guard", reply)
	}
	switch outcome {
	case 1:
		return guardAnswer{value: second}, nil
	case 0:
		if current, ok := second.(int64); ok && current >= 1 && uint64(current) <= driver.MaxToken {
			return guardAnswer{stale: true, current: uint64(current)}, nil
		}
	case -1:
		return guardAnswer{}, fmt.Errorf("%w name: its key is the lock itself; give the locks a prefix, or the resource another name", driver.ErrInvalid)
	case -2:
		return guardAnswer{}, fmt.Errorf("%w: the key of its mark holds none: another program wrote to it; delete it when no old holder is left", driver.ErrKindMismatch)
	case 2:
		if text, ok := second.(string); ok {
			return guardAnswer{failed: &ScriptError{text}}, nil
		}
	}
	return guardAnswer{}, form.Malformed("the guard", reply)
}
