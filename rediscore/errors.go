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

// errMoving: a Redis Cluster moves the slot of a name from one node to another.
// Meanwhile neither node serves a script with several keys, unless all of them
// exist, and are there; one with a single key is served at any time. So
// exclusive leases, which are in one key, can be renewed and ended. A grant
// needs the last token too, which is in another (INVARIANT I2).
var errMoving = fmt.Errorf("%w: the cluster moves this name to another node", driver.ErrUnavailable)

// A refusal is what an error of the server means by which it certainly did nothing.
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

// refusals are by the first word of the error.
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

// saying knows such errors without a word of their own, by their text.
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

// meaning returns what a server's error means, and what to do; no sentinel if
// it is not known to mean that nothing was done.
func meaning(text string) refusal {
	words := strings.Fields(text)
	if !strings.HasPrefix(text, "Error running script") && !strings.HasPrefix(text, "@user_script") {
		words = words[:min(len(words), 1)] // others are after the line number of old servers
	}
	for _, word := range words {
		if known, ok := refusals[strings.TrimPrefix(word, "-")]; ok {
			return known
		}
	}
	return saying(text)
}

// isMoving reports whether nothing was done because a slot is being moved.
func isMoving(err error) bool { return errors.Is(err, errMoving) }

// isRefused reports whether a call of many was refused in a way that each has to
// find out about for itself: the user has no right to one of the keys, or the slot
// is being moved, when less can be asked for.
func isRefused(err error) bool { return errors.Is(err, driver.ErrPermission) || isMoving(err) }
