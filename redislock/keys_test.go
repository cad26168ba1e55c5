package redislock

import (
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A keyspace returns the keys of a prefix, as the documentation of package rediscore describes
// them, for names without braces.
type keyspace struct{ prefix string }

// The kinds of companions.
const (
	kindFence     = "fence"
	kindCancelled = "cancelled"
	kindHolders   = "holders"
	kindQueue     = "queue"
	kindDetail    = "detail"
	kindRecord    = "record"
)

func (k keyspace) companion(kind, name, rest string) string {
	return k.prefix + "holdfast:{" + k.prefix + name + "}:" + kind + ":" + rest
}

func (k keyspace) fence(name string) string    { return k.companion(kindFence, name, name) }
func (k keyspace) record(name string) string   { return k.companion(kindRecord, name, name) }
func (k keyspace) mark(resource string) string { return k.companion("mark", resource, resource) }
func (k keyspace) marker() string              { return k.prefix + "holdfast:{member}:marker" }
func (k keyspace) tombstone(name string, id lockinfo.LeaseID) string {
	return k.companion(kindCancelled, name, string(id))
}

// state returns the keys that a name may have while it is in use.
func (k keyspace) state(name string) []string {
	keys := []string{k.prefix + name}
	for _, kind := range kinds {
		keys = append(keys, k.companion(kind, name, name))
	}
	return keys
}

// vault returns the keys of a one-time token.
func (k keyspace) vault(digest driver.Digest) []string {
	base := k.prefix + "holdfast:{" + string(digest) + "}:"
	return []string{base + "onetime:" + string(digest), base + "payload:" + string(digest)}
}

// nameOf returns the name of a companion without a prefix.
func nameOf(key string) string {
	_, rest, _ := strings.Cut(key, "}:")
	_, name, _ := strings.Cut(rest, ":")
	return name
}
