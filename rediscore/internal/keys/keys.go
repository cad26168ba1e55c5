// Package keys names the keys of a store, and the slots that they are in.
package keys

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// reserved begins, after the prefix, every key that is not a lock.
const reserved = "holdfast:{"

// The kinds of companion keys.
const (
	kindFence     = "fence"     // rest: the name
	kindMark      = "mark"      // rest: the resource
	kindCancelled = "cancelled" // rest: the lease ID
	kindHolders   = "holders"   // rest: the name
	kindQueue     = "queue"     // rest: the name
	kindWaiters   = "waiters"   // rest: the name
	kindDetail    = "detail"    // rest: the name
	kindRecord    = "record"    // rest: the name
	kindBroken    = "broken"    // rest: the name
	kindOnetime   = "onetime"   // rest: the digest, which is the tag too
	kindPayload   = "payload"   // rest: the digest, which is the tag too
)

// Space names the keys of one prefix.
type Space struct{ Prefix string }

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
	return Space{prefix}, nil
}

// Check returns an error that wraps ErrInvalid for a name whose key could be
// mistaken for a companion.
func (k Space) Check(name string) error {
	if strings.HasPrefix(name, reserved) {
		return fmt.Errorf("%w name: %q at its beginning is reserved", driver.ErrInvalid, reserved)
	}
	return nil
}

// Lock returns the key of a lock. It is exactly prefix and name, so that
// clients that know nothing of holdfast can exclude it and be excluded.
func (k Space) Lock(name string) string { return k.Prefix + name }

// Companion returns a key in the same slot as the lock.
func (k Space) Companion(kind, name, rest string) string {
	return k.companions(name) + kind + ":" + rest
}

// companions returns what all companions of a name begin with.
func (k Space) companions(name string) string {
	return k.Prefix + reserved + slotTag(k.Lock(name)) + "}:"
}

func (k Space) Fence(name string) string { return k.Companion(kindFence, name, name) }

func (k Space) Mark(resource string) string { return k.Companion(kindMark, resource, resource) }

func (k Space) Record(name string) string { return k.Companion(kindRecord, name, name) }

func (k Space) Broken(name string) string { return k.Companion(kindBroken, name, name) }

// State returns the keys that queue.lua wants of a name.
func (k Space) State(name string) []string {
	base := k.companions(name)
	keys := make([]string, 0, 8) // often a tombstone follows
	keys = append(keys, k.Lock(name))
	for _, kind := range []string{kindFence, kindHolders, kindQueue, kindWaiters, kindDetail, kindRecord} {
		keys = append(keys, base+kind+":"+name)
	}
	return keys
}

// Vault returns the keys that vault.lua wants of a one-time token. They belong
// to no lock, so the digest is their hash tag, unless the prefix has one.
func (k Space) Vault(digest driver.Digest) []string {
	base := k.Prefix + reserved + string(digest) + "}:"
	return []string{base + kindOnetime + ":" + string(digest), base + kindPayload + ":" + string(digest)}
}

// Member returns the keys of a lease that the scripts of a member want.
func (k Space) Member(name string, id driver.LeaseID) []string {
	return []string{k.Lock(name), k.Fence(name), k.Tombstone(name, id), k.Companion(kindQueue, name, name)}
}

// Marker returns the key that says until when a member is in quarantine.
func (k Space) Marker() string { return k.Prefix + reserved + "member}:marker" }

// Leases returns the keys that extend.lua wants of a name.
func (k Space) Leases(name string) []string {
	all := k.State(name)
	return []string{all[0], all[2], all[4], all[5]}
}

// Inboxes begins the channels on which engines hear of leases that were
// handed to them; the ID of the inbox follows.
func (k Space) Inboxes() string { return k.Prefix + "holdfast:inbox:" }

// AllInboxes ends the channel on which all engines hear of leases that are over.
const AllInboxes = "all"

func (k Space) Tombstone(name string, id driver.LeaseID) string {
	return k.Companion(kindCancelled, name, string(id))
}

// ListPattern matches the fence and queue keys of the names that begin with
// namePrefix, and perhaps others.
func (k Space) ListPattern(namePrefix string) string {
	return globEscape(k.Prefix+reserved) + "*}:[fq][eu][ne][cu]e:" + globEscape(namePrefix) + "*"
}

// ListedName returns the name that a fence or queue key belongs to. A tag
// contains no closing brace, so the first one ends it.
func (k Space) ListedName(key string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, k.Prefix+reserved)
	if !ok {
		return "", false
	}
	if _, rest, ok = strings.Cut(rest, "}:"); !ok {
		return "", false
	}
	kind, name, ok := strings.Cut(rest, ":")
	if !ok || kind != kindFence && kind != kindQueue {
		return "", false
	}
	return name, k.Check(name) == nil && driver.CheckName(name) == nil && k.Companion(kind, name, name) == key
}

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

// tagOf returns a text of zeros and ones that is in a slot. The checksum is
// linear: to turn a zero into a one changes it by bits that depend on nothing
// but the place. Among 16 places there are 14 whose changes together make every
// slot.
func tagOf(slot uint16) string {
	const slots, places = 14, 16 // bits of a slot, digits of the tag
	text := []byte(strings.Repeat("0", places))
	zero := crc16(string(text))
	var changes, digits [slots]uint16 // by their highest bit, and by which digits
	reduce := func(bits, used uint16) (rest, by uint16) {
		for b := slots - 1; b >= 0; b-- {
			if bits>>b&1 == 0 {
				continue
			}
			if changes[b] == 0 {
				return bits, used
			}
			bits, used = bits^changes[b], used^digits[b]
		}
		return 0, used
	}
	for i := range places {
		text[i] = '1'
		change, used := reduce((crc16(string(text))^zero)%(1<<slots), 1<<i)
		text[i] = '0'
		if change != 0 {
			b := bits.Len16(change) - 1
			changes[b], digits[b] = change, used
		}
	}
	_, used := reduce((slot^zero)%(1<<slots), 0)
	for i := range places {
		text[i] += byte(used >> i & 1)
	}
	return string(text)
}

// hashTag returns what the server hashes instead of the whole key: the text
// between the first opening brace and the first closing brace after it,
// unless it is empty.
func hashTag(key string) (tag string, ok bool) {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	tag, _, ok = strings.Cut(rest, "}")
	return tag, ok && tag != ""
}

// Slot returns the slot of a key in a Redis Cluster.
func Slot(key string) uint16 {
	if tag, ok := hashTag(key); ok {
		key = tag
	}
	return crc16(key) % 16384
}

// crc16 is CRC-16/XMODEM, as in the Redis Cluster specification.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// globEscape returns a pattern that matches s only.
func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
