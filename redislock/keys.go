package redislock

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

// keyspace names the keys of one prefix.
type keyspace struct{ prefix string }

// newKeyspace returns an error that wraps ErrInvalid for a prefix with which
// a lock and its companions could be in different slots of a Redis Cluster.
func newKeyspace(prefix string) (keyspace, error) {
	if prefix == "" {
		return keyspace{}, nil
	}
	if err := driver.CheckName(prefix); err != nil {
		return keyspace{}, fmt.Errorf("prefix %q: %w", prefix, err)
	}
	if _, ok := hashTag(prefix); !ok && strings.ContainsAny(prefix, "{}") {
		return keyspace{}, fmt.Errorf("%w prefix %q: its braces are not a hash tag; want none, or {tag}", driver.ErrInvalid, prefix)
	}
	return keyspace{prefix}, nil
}

// check returns an error that wraps ErrInvalid for a name whose key could be
// mistaken for a companion.
func (k keyspace) check(name string) error {
	if strings.HasPrefix(name, reserved) {
		return fmt.Errorf("%w name: %q at its beginning is reserved", driver.ErrInvalid, reserved)
	}
	return nil
}

// lock returns the key of a lock. It is exactly prefix and name, so that
// clients that know nothing of holdfast can exclude it and be excluded.
func (k keyspace) lock(name string) string { return k.prefix + name }

// companion returns a key in the same slot as the lock.
func (k keyspace) companion(kind, name, rest string) string {
	return k.companions(name) + kind + ":" + rest
}

// companions returns what all companions of a name begin with.
func (k keyspace) companions(name string) string {
	return k.prefix + reserved + slotTag(k.lock(name)) + "}:"
}

func (k keyspace) fence(name string) string { return k.companion(kindFence, name, name) }

func (k keyspace) mark(resource string) string { return k.companion(kindMark, resource, resource) }

func (k keyspace) record(name string) string { return k.companion(kindRecord, name, name) }

func (k keyspace) broken(name string) string { return k.companion(kindBroken, name, name) }

// state returns the keys that queue.lua wants of a name.
func (k keyspace) state(name string) []string {
	base := k.companions(name)
	keys := make([]string, 0, 8) // often a tombstone follows
	keys = append(keys, k.lock(name))
	for _, kind := range []string{kindFence, kindHolders, kindQueue, kindWaiters, kindDetail, kindRecord} {
		keys = append(keys, base+kind+":"+name)
	}
	return keys
}

// vault returns the keys that vault.lua wants of a one-time token. They belong
// to no lock, so the digest is their hash tag, unless the prefix has one.
func (k keyspace) vault(digest driver.Digest) []string {
	base := k.prefix + reserved + string(digest) + "}:"
	return []string{base + kindOnetime + ":" + string(digest), base + kindPayload + ":" + string(digest)}
}

// leases returns the keys that extend.lua wants of a name.
func (k keyspace) leases(name string) []string {
	all := k.state(name)
	return []string{all[0], all[2], all[4], all[5]}
}

// inboxes begins the channels on which engines hear of leases that were
// handed to them; the ID of the inbox follows.
func (k keyspace) inboxes() string { return k.prefix + "holdfast:inbox:" }

// allInboxes ends the channel on which all engines hear of leases that are over.
const allInboxes = "all"

func (k keyspace) tombstone(name string, id driver.LeaseID) string {
	return k.companion(kindCancelled, name, string(id))
}

// listPattern matches the fence and queue keys of the names that begin with
// namePrefix, and perhaps others.
func (k keyspace) listPattern(namePrefix string) string {
	return globEscape(k.prefix+reserved) + "*}:[fq][eu][ne][cu]e:" + globEscape(namePrefix) + "*"
}

// listedName returns the name that a fence or queue key belongs to. A tag
// contains no closing brace, so the first one ends it.
func (k keyspace) listedName(key string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, k.prefix+reserved)
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
	return name, k.check(name) == nil && driver.CheckName(name) == nil && k.companion(kind, name, name) == key
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
	return tagOf(slot(key))
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

// slot returns the slot of a key in a Redis Cluster.
func slot(key string) uint16 {
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
