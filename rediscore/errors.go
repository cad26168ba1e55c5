package rediscore

import (
	"fmt"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// ErrLayout is wrapped by the error of a request about a name that another
// version of holdfast keeps in another layout. It wraps driver.ErrKindMismatch.
var ErrLayout = fmt.Errorf("%w: another version of holdfast keeps this name in another layout", driver.ErrKindMismatch)

// refusal knows the server's errors by which it certainly did nothing, by
// their first word. It returns nil for others.
func refusal(code string) (advice string, sentinel error) {
	switch code {
	case "READONLY":
		return "the server is a read-only replica: use the master's address", driver.ErrUnavailable
	case "LOADING":
		return "the server is loading its data: try again later", driver.ErrUnavailable
	case "MASTERDOWN":
		return "the server is a replica without its master: use the master's address", driver.ErrUnavailable
	case "TRYAGAIN":
		return "try again later", errMoving
	case "CLUSTERDOWN":
		return "the cluster does not serve this name for now: try again later", driver.ErrUnavailable
	case "MOVED", "ASK", "CROSSSLOT":
		return "the server is a node of a Redis Cluster that does not serve this name: use redis+cluster://, or a cluster client with New; if you do, the nodes disagree for now: try again later", driver.ErrUnavailable
	case "OOM":
		return "the server's memory is full: raise maxmemory", driver.ErrUnavailable
	case "NOREPLICAS", "MISCONF":
		return "the server refuses writes until its replicas or disk are well again", driver.ErrUnavailable
	case "BUSY":
		return "the server is busy with a script: try again later", driver.ErrUnavailable
	case "NOAUTH", "WRONGPASS":
		return "check the user name and the password", driver.ErrPermission
	case "NOPERM", "DENIED":
		return "the user lacks rights that locks need: holdfast doctor says which", driver.ErrPermission
	case "LAYOUT":
		return "this one knows layout " + lua.DataLayout +
			": ask for the name with the same version, or again when nobody has it or waits for it there", ErrLayout
	case "WRONGTYPE":
		return "another program uses this key: use another name or prefix", driver.ErrKindMismatch
	}
	return "", nil
}

// saying knows such errors without a word of their own, by their text.
func saying(text string) (advice string, sentinel error) {
	switch {
	case strings.Contains(text, "user executing the script"), strings.HasPrefix(text, "ACL failure in script"): // Redis 7; Valkey 8
		return refusal("NOPERM")
	case strings.HasPrefix(text, "AUTH "), strings.HasPrefix(text, "invalid password"):
		return refusal("WRONGPASS")
	case strings.HasPrefix(text, "max number of clients"):
		return "the server has too many connections: raise maxclients", driver.ErrUnavailable
	case strings.HasPrefix(text, "DB index"):
		return "the server has no database of this number", driver.ErrInvalid
	}
	return "", nil
}

// meaning returns what a server's error means, and what to do; no sentinel if
// it is not known to mean that nothing was done.
func meaning(text string) (advice string, sentinel error) {
	code, rest, _ := strings.Cut(text, " ")
	if strings.HasPrefix(text, "Error running script") || strings.HasPrefix(text, "@user_script") {
		// Old servers put the script's error after its line number.
		for word := range strings.FieldsSeq(rest) {
			if _, sentinel := refusal(strings.TrimPrefix(word, "-")); sentinel != nil {
				code = strings.TrimPrefix(word, "-")
				break
			}
		}
	}
	if advice, sentinel = refusal(code); sentinel == nil {
		advice, sentinel = saying(text)
	}
	return advice, sentinel
}
