package runner

import (
	"slices"
	"strconv"
	"strings"
)

// HeldVariable is the environment variable that lists the held locks.
const HeldVariable = "HOLDFAST_HELD"

// A HeldLock is one lock that a run holds.
type HeldLock struct {
	Token uint64
	Store string // URL without credentials
	Name  string
}

// Held are the locks that this run and the runs around it hold, the outermost
// first.
type Held []HeldLock

// ParseHeld parses the result of String. It skips lines that it does not understand: another
// version may have written them, and the locks only say what not to wait for.
func ParseHeld(value string) (locks Held) {
	for line := range strings.Lines(value) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3) // names may have spaces in them
		if len(fields) < 3 {
			continue
		}
		token, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil || token == 0 {
			continue
		}
		locks = append(locks, HeldLock{token, fields[1], fields[2]})
	}
	return locks
}

// String returns a line for each lock: TOKEN STORE NAME.
func (l Held) String() string {
	lines := make([]string, len(l))
	for i, lock := range l { // names have no control characters
		lines[i] = strconv.FormatUint(lock.Token, 10) + " " + strings.ReplaceAll(lock.Store, " ", "%20") + " " + lock.Name
	}
	return strings.Join(lines, "\n")
}

// of returns the locks of one name. It does not compare stores, because a store has many URLs;
// tokens, which are the store's time in microseconds, tell the locks apart.
func (l Held) of(name string) Held {
	return slices.DeleteFunc(slices.Clone(l), func(lock HeldLock) bool { return lock.Name != name })
}

// has reports whether one of the locks has the token.
func (l Held) has(token uint64) bool {
	return slices.ContainsFunc(l, func(lock HeldLock) bool { return lock.Token == token })
}
