// Package keys has the names of a store's keys, and their slots.
package keys

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// reserved follows the prefix in every key that is not a lock.
const reserved = "holdfast:{"

// A Kind is the purpose of a key of a name. The key contains its text. In scripts its name is the
// text in capital letters; see package lua.
type Kind = string

const (
	Lock      Kind = "lock" // the key that clients other than holdfast use
	Fence     Kind = "fence"
	Holders   Kind = "holders"
	Queue     Kind = "queue"
	Detail    Kind = "detail"
	Record    Kind = "record"
	Broken    Kind = "broken"
	History   Kind = "history"   // events of leases; see HistorySuffix
	Crowd     Kind = "crowd"     // events of waiters
	Cancelled Kind = "cancelled" // of a lease ID
	Mark      Kind = "mark"      // of a resource; see package redisfence
	Marker    Kind = "marker"    // of a whole prefix; see package member
	Onetime   Kind = "onetime"   // of a digest
	Payload   Kind = "payload"   // of a digest
)

// Suffixes that scripts add to the key of the detail for the keys of a history. No name contains a
// newline.
const (
	HistorySuffix = "\nhistory"
	CrowdSuffix   = "\ncrowd"
)

// Kinds that belong together.
const (
	State = "lock fence holders queue detail record" // of a name that is in use
	Lease = "lock fence cancelled"                   // the keys of a lease in a member of a quorum
	Vault = "onetime payload"                        // of a one-time token
)

// A Space has the names of the keys of one prefix, and of the channels of the prefix and a
// database.
type Space struct {
	Prefix   string
	Database int
}

// New returns an error that wraps ErrInvalid if a lock and its companions could be in different
// slots of a Redis Cluster under prefix.
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

// Check returns an error that wraps ErrInvalid if the key of name could be mistaken for a
// companion.
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

// Append appends keys of a name to all; id is for the keys of a lease ID.
func (k Space) Append(all []string, kinds []Kind, name string, id lockinfo.LeaseID) []string {
	lock := k.Lock(name)
	if len(kinds) == 1 && kinds[0] == Lock { // as in a renewal
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

// Key returns one key of a name. The kind must not be that of a lease ID's key.
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

// Lock returns the key of a lock. It is exactly prefix and name, so that clients that know nothing
// of holdfast and holdfast exclude each other.
func (k Space) Lock(name string) string { return k.Prefix + name }

// slotTag returns the hash tag for the companions of a key: a text without a closing brace that is
// in the key's slot.
func slotTag(key string) string {
	if tag, ok := hashTag(key); ok {
		return tag
	}
	if !strings.Contains(key, "}") {
		return key
	}
	// Rare: the key has braces that are not a hash tag, so the server hashes the whole key.
	return tagOf(Slot(key))
}

// Inboxes returns the prefix of the channels on which engines receive messages; the ID of the
// inbox, or a suffix below, follows. It contains the number of the database, because all databases
// of a server share their channels.
func (k Space) Inboxes() string {
	return k.Prefix + "holdfast:inbox:" + strconv.Itoa(k.Database) + ":"
}

// Suffixes of the channels that all engines share.
const (
	AllInboxes = "all"   // leases that have ended
	Feed       = "feed"  // events
	Heard      = "heard" // nothing: engines that receive events also subscribe to it, on every node
)

// A Listing is the kinds of keys by which names are found.
type Listing string

const (
	Locks   Listing = "fence queue"
	Records Listing = "record"
)

// pattern returns a glob pattern that matches the kinds, and perhaps others.
func (l Listing) pattern() string {
	if l == Locks {
		return "[fq][eu][ne][cu]e"
	}
	return string(l)
}

// ListPattern returns a glob pattern that matches the keys of a listing for the names that begin
// with namePrefix, and perhaps others.
func (k Space) ListPattern(of Listing, namePrefix string) string {
	return globEscape(k.Prefix+reserved) + "*}:" + of.pattern() + ":" + globEscape(namePrefix) + "*"
}

// ListedName returns the name of a listing's key. A tag contains no closing brace, so the first one
// ends it.
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
