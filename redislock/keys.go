package redislock

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// reserved begins, after the prefix, every key that is not a lock.
const reserved = "holdfast:{"

// The kinds of companion keys, and of channels, which are named alike.
const (
	kindFence     = "fence"     // rest: the name
	kindMark      = "mark"      // rest: the resource
	kindCancelled = "cancelled" // rest: the lease ID
	kindReleased  = "released"  // rest: the name; a channel
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
	return k.prefix + reserved + slotTag(k.lock(name)) + "}:" + kind + ":" + rest
}

func (k keyspace) fence(name string) string { return k.companion(kindFence, name, name) }

func (k keyspace) mark(resource string) string { return k.companion(kindMark, resource, resource) }

func (k keyspace) channel(name string) string { return k.companion(kindReleased, name, name) }

func (k keyspace) tombstone(name string, id driver.LeaseID) string {
	return k.companion(kindCancelled, name, string(id))
}

// fencePattern matches the fence keys of the names that begin with
// namePrefix, and perhaps others.
func (k keyspace) fencePattern(namePrefix string) string {
	return globEscape(k.prefix+reserved) + "*}:" + kindFence + ":" + globEscape(namePrefix) + "*"
}

// fenceName returns the name that a fence key belongs to. A tag contains no
// closing brace, so the first one ends it.
func (k keyspace) fenceName(key string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, k.prefix+reserved)
	if !ok {
		return "", false
	}
	if _, rest, ok = strings.Cut(rest, "}:"+kindFence+":"); !ok {
		return "", false
	}
	return rest, k.check(rest) == nil && driver.CheckName(rest) == nil && k.fence(rest) == key
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
	// Rare: braces that are no hash tag, so that the server hashes the whole
	// key. A number of the same slot is found in about 16,384 steps.
	want := slot(key)
	for n := 0; ; n++ {
		if tag := strconv.Itoa(n); slot(tag) == want {
			return tag
		}
	}
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
