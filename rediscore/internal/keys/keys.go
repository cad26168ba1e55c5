// Package keys names the keys of a store, and the slots that they are in.
package keys

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// reserved begins, after the prefix, every key that is not a lock.
const reserved = "holdfast:{"

// A Kind is what a key of a name is for. Its text is in the key, and its name
// in scripts is the same in capital letters; see package lua.
type Kind = string

const (
	Lock      Kind = "lock" // the key that clients which know nothing of holdfast use
	Fence     Kind = "fence"
	Holders   Kind = "holders"
	Queue     Kind = "queue"
	Detail    Kind = "detail"
	Record    Kind = "record"
	Broken    Kind = "broken"
	History   Kind = "history"   // what has happened to leases; see HistorySuffix
	Crowd     Kind = "crowd"     // and to those who waited
	Cancelled Kind = "cancelled" // of a lease ID
	Mark      Kind = "mark"      // of a resource; see package redisfence
	Marker    Kind = "marker"    // of a whole prefix; see package member
	Onetime   Kind = "onetime"   // of a digest
	Payload   Kind = "payload"   // of a digest
)

// Suffixes of the key of the detail, from which scripts make those of a history. No name
// contains a newline.
const (
	HistorySuffix = "\nhistory"
	CrowdSuffix   = "\ncrowd"
)

// Kinds that belong together.
const (
	State = "lock fence holders queue detail record" // of a name that is in use
	Lease = "lock fence cancelled"                   // what a member of a quorum keeps of a lease
	Vault = "onetime payload"                        // of a one-time token
)

// Space names the keys of one prefix, and the channels of it and of a database.
type Space struct {
	Prefix   string
	Database int
}

// New returns an error that wraps ErrInvalid for a prefix with which
// a lock and its companions could be in different slots of a Redis Cluster.
func New(prefix string) (Space, error) {
	if prefix == "" {
		return Space{}, nil
	}
	if err := driver.CheckName(prefix); err != nil {
		return Space{}, fmt.Errorf("prefix %q: %w", prefix, err)
	}
	if _, ok := hashTag(prefix); !ok && strings.ContainsAny(prefix, "{}") {
		return Space{}, fmt.Errorf("%w prefix %q: its braces are not a hash tag; want none, or {tag}", driver.ErrInvalid, prefix)
	}
	return Space{Prefix: prefix}, nil
}

// Check returns an error that wraps ErrInvalid for a name whose key could be
// mistaken for a companion.
func (k Space) Check(name string) error {
	if strings.HasPrefix(name, reserved) {
		return fmt.Errorf("%w name: %q at its beginning is reserved", driver.ErrInvalid, reserved)
	}
	return nil
}

// Of returns keys of a name; id is for the keys of a lease ID.
func (k Space) Of(kinds []Kind, name string, id lockinfo.LeaseID) []string {
	return k.Append(make([]string, 0, len(kinds)), kinds, name, id)
}

// Append adds to all the keys of a name; id is for the keys of a lease ID.
func (k Space) Append(all []string, kinds []Kind, name string, id lockinfo.LeaseID) []string {
	lock := k.Lock(name)
	if len(kinds) == 1 && kinds[0] == Lock { // a renewal's
		return append(all, lock)
	}
	tag := slotTag(lock)
	var text strings.Builder // one allocation for all keys
	text.Grow(len(kinds) * (len(k.Prefix) + len(reserved) + len(tag) + len("}:") + len(Holders+":") + max(len(name)+len(HistorySuffix), len(id))))
	for _, kind := range kinds {
		rest := name
		switch kind {
		case Lock:
			all = append(all, lock)
			continue
		case Marker:
			all = append(all, k.Prefix+reserved+"member}:"+Marker)
			continue
		case Cancelled:
			rest = string(id)
		case History:
			kind, rest = Detail, name+HistorySuffix
		case Crowd:
			kind, rest = Detail, name+CrowdSuffix
		}
		from := text.Len()
		for _, part := range [...]string{k.Prefix, reserved, tag, "}:", kind, ":", rest} {
			text.WriteString(part)
		}
		all = append(all, text.String()[from:])
	}
	return all
}

// Key returns one key of a name that is of no lease ID.
func (k Space) Key(kind Kind, name string) string { return k.Of([]Kind{kind}, name, "")[0] }

// Token returns keys of a one-time token. They belong to no lock, so the digest
// is their hash tag, unless the prefix has one.
func (k Space) Token(kinds []Kind, digest driver.Digest) []string {
	all := make([]string, len(kinds))
	for i, kind := range kinds {
		all[i] = k.Prefix + reserved + string(digest) + "}:" + kind + ":" + string(digest)
	}
	return all
}

// Lock returns the key of a lock. It is exactly prefix and name, so that
// clients that know nothing of holdfast can exclude it and be excluded.
func (k Space) Lock(name string) string { return k.Prefix + name }

// slotTag returns the hash tag for the companions of a key: a text without a
// closing brace whose slot is the key's.
func slotTag(key string) string {
	if tag, ok := hashTag(key); ok {
		return tag
	}
	if !strings.Contains(key, "}") {
		return key
	}
	// Rare: braces that are not a hash tag, so that the server hashes the whole
	// key.
	return tagOf(Slot(key))
}

// Inboxes begins the channels on which engines hear of leases that were
// handed to them; the ID of the inbox follows. The number of the database is in it,
// because a server has one set of channels for all its databases.
func (k Space) Inboxes() string {
	return k.Prefix + "holdfast:inbox:" + strconv.Itoa(k.Database) + ":"
}

// What ends the channels that all engines share.
const (
	AllInboxes = "all"   // leases that have ended
	Feed       = "feed"  // events
	Heard      = "heard" // nothing: listeners to events subscribe to it too, on every node
)

// A Listing finds names by their keys of these kinds.
type Listing string

const (
	Locks   Listing = "fence queue"
	Records Listing = "record"
)

// pattern matches the kinds, and perhaps others.
func (l Listing) pattern() string {
	if l == Locks {
		return "[fq][eu][ne][cu]e"
	}
	return string(l)
}

// ListPattern matches the keys of a listing of the names that begin with
// namePrefix, and perhaps others.
func (k Space) ListPattern(of Listing, namePrefix string) string {
	return globEscape(k.Prefix+reserved) + "*}:" + of.pattern() + ":" + globEscape(namePrefix) + "*"
}

// ListedName returns the name that a key of a listing belongs to. A tag
// contains no closing brace, so the first one ends it.
func (k Space) ListedName(of Listing, key string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, k.Prefix+reserved)
	if !ok {
		return "", false
	}
	if _, rest, ok = strings.Cut(rest, "}:"); !ok {
		return "", false
	}
	kind, name, ok := strings.Cut(rest, ":")
	if !ok || !slices.Contains(strings.Fields(string(of)), kind) {
		return "", false
	}
	return name, k.Check(name) == nil && driver.CheckName(name) == nil && k.Key(kind, name) == key
}

// globEscape returns a pattern that matches s only.
func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
