package redisfence

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A Script is Lua code that a Guard runs for holders whose token is not
// stale. It is safe for concurrent use.
type Script struct{ lua *lua.Script }

// NewScript prepares the body of a script, in the Lua of the server. The body
// finds the resource's key in KEYS[1], the keys given to Run after it in
// KEYS[2] and further, and the arguments given to Run in ARGV[1] and further;
// the guard's own keys and arguments are hidden. It may return a value. It
// must not begin with a shebang line. Prepare a script once and keep it: it
// is sent in full only to a server that does not know it.
//
// An empty body only advances.
func NewScript(body string) *Script {
	// On one line with the body's first, so that the server's errors name the
	// right lines of it.
	return &Script{lua.New("local function body(KEYS, ARGV) " + body + "\nend\n" + guardLua)}
}

// Run runs the script if the claim is not stale, and returns its value: an
// int64, a string, nil, or a []any of them. The check and the script are one
// atomic step. Every key that the script uses must be given in keys; in a
// Redis Cluster all must be in the slot of the resource.
//
// If the script raises or returns an error, Run returns a *ScriptError, and
// what the script wrote before stays written: the server undoes nothing.
func (g *Guard) Run(ctx context.Context, s *Script, resource string, c fence.Claim, keys, args []string) (any, error) {
	return g.run(ctx, s, resource, c, keys, args)
}

// A ScriptError is an error that a Script raised or returned.
type ScriptError struct {
	Text string // as the server tells it
}

func (e *ScriptError) Error() string {
	return fmt.Sprintf("the script failed; what it wrote before stays: %s", e.Text)
}

// A guardAnswer is what guard.lua decided.
type guardAnswer struct {
	stale   bool
	current uint64       // if stale: the mark
	value   any          // if not: of the body
	failed  *ScriptError // if not: the body's error, or nil
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
