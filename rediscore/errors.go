package rediscore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// ErrLayout is wrapped by the error of a request about a name that another
// version of holdfast keeps in another layout. It wraps driver.ErrKindMismatch.
var ErrLayout = fmt.Errorf("%w: another version of holdfast keeps this name in another layout", driver.ErrKindMismatch)

// errMoving means that a Redis Cluster is moving the slot of a name from one node to another.
// Meanwhile neither node serves a script with several keys, unless all of them exist on that node.
// Either serves a script with a single key. So an exclusive lease, which is in one key, can be
// renewed and ended. A grant also needs the key of the last token (INVARIANT I2).
var errMoving = fmt.Errorf("%w: the cluster moves this name to another node", driver.ErrUnavailable)

// A refusal is the meaning of a server's error that says for certain that nothing was done.
type refusal struct {
	sentinel error // what callers test for; nil if the outcome is unknown
	advice   string
}

const (
	notThisNode = "the server is a node of a Redis Cluster that does not serve this name: use redis+cluster://, or a cluster client with New; " +
		"if you do, the nodes disagree for now: try again later"
	refusesWrites = "the server refuses writes until its replicas or disk are well again"
	checkPassword = "check the user name and the password" //nolint:gosec // not one
	lacksRights   = "the user lacks rights that locks need: holdfast doctor says which"
)

// refusals has the refusals by the first word of the error.
var refusals = map[string]refusal{
	"READONLY":    {driver.ErrUnavailable, "the server is a read-only replica: use the master's address"},
	"LOADING":     {driver.ErrUnavailable, "the server is loading its data: try again later"},
	"MASTERDOWN":  {driver.ErrUnavailable, "the server is a replica without its master: use the master's address"},
	"TRYAGAIN":    {errMoving, "try again later"},
	"CLUSTERDOWN": {driver.ErrUnavailable, "the cluster does not serve this name for now: try again later"},
	"MOVED":       {driver.ErrUnavailable, notThisNode},
	"ASK":         {driver.ErrUnavailable, notThisNode},
	"CROSSSLOT":   {driver.ErrUnavailable, notThisNode},
	"OOM":         {driver.ErrUnavailable, "the server's memory is full: raise maxmemory"},
	"NOREPLICAS":  {driver.ErrUnavailable, refusesWrites},
	"MISCONF":     {driver.ErrUnavailable, refusesWrites},
	"BUSY":        {driver.ErrUnavailable, "the server is busy with a script: try again later"},
	"NOAUTH":      {driver.ErrPermission, checkPassword},
	"WRONGPASS":   {driver.ErrPermission, checkPassword},
	"NOPERM":      {driver.ErrPermission, lacksRights},
	"DENIED":      {driver.ErrPermission, lacksRights},
	"LAYOUT": {ErrLayout, "this one knows layout " + lua.DataLayout +
		": ask for the name with the same version, or again when nobody has it or waits for it there"},
	"WRONGTYPE": {driver.ErrKindMismatch, "another program uses this key: use another name or prefix"},
}

// saying returns the refusal for an error that has no distinctive first word, by its text.
func saying(text string) refusal {
	switch {
	case strings.Contains(text, "user executing the script"), strings.HasPrefix(text, "ACL failure in script"): // Redis 7; Valkey 8
		return refusals["NOPERM"]
	case strings.HasPrefix(text, "AUTH "), strings.HasPrefix(text, "invalid password"):
		return refusals["WRONGPASS"]
	case strings.HasPrefix(text, "max number of clients"):
		return refusal{driver.ErrUnavailable, "the server has too many connections: raise maxclients"}
	case strings.HasPrefix(text, "DB index"):
		return refusal{driver.ErrInvalid, "the server has no database of this number"}
	}
	return refusal{}
}

// meaning returns the refusal for a server's error. It has no sentinel if the error is not known to
// mean that nothing was done.
func meaning(text string) refusal {
	words := strings.Fields(text)
	if !strings.HasPrefix(text, "Error running script") && !strings.HasPrefix(text, "@user_script") {
		words = words[:min(len(words), 1)] // servers that add a line number have the word behind it
	}
	for _, word := range words {
		if known, ok := refusals[strings.TrimPrefix(word, "-")]; ok {
			return known
		}
	}
	return saying(text)
}

// isMoving reports whether nothing was done because the cluster is moving a slot.
func isMoving(err error) bool { return errors.Is(err, errMoving) }

// isRefused reports whether the server refused a call for several requests for a reason that may
// concern only some of them: the user lacks the right to one of the keys, or a slot is being moved.
// Each request should then be made alone.
func isRefused(err error) bool { return errors.Is(err, driver.ErrPermission) || isMoving(err) }
