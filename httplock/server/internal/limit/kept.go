package limit

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// keptMore is how many bytes a result or token counts in addition to its own.
const keptMore = 512

// Record returns the key of the result of do-once work.
func Record(name string) string { return "record " + name }

// Token returns the key of a one-time token.
func Token(d driver.Digest) string { return "token " + string(d) }

// Room returns an error if c has reached its limit of bytes in the store. Call it before
// do-once work, because the result must be kept.
func (l *Limits) Room(c *caller.Caller) error {
	a, closed := l.open(c)
	defer closed()
	return l.fits(a, 1, l.max.Kept)
}

// Keep counts n bytes that the store is about to keep for c under a key, until they expire
// or are Dropped. The store may refuse them and keep earlier bytes under the same key, so the
// larger size counts until the later end. done doubles the limit, for the result of work that
// is done.
func (l *Limits) Keep(c *caller.Caller, key string, n int, ttl time.Duration, done bool) error {
	a, closed := l.open(c)
	defer closed()
	most, now := l.max.Kept, time.Now()
	if done {
		most *= 2
	}
	e, old := entry{int64(n) + keptMore, now.Add(ttl)}, a.kept.all[key]
	if !now.Before(old.ends) {
		a.kept.drop(key)
		old = entry{}
	}
	if e.bytes = max(e.bytes, old.bytes); old.ends.After(e.ends) {
		e.ends = old.ends
	}
	if err := l.fits(a, e.bytes-old.bytes, most); err != nil {
		return err
	}
	a.kept.put(key, e)
	return nil
}

// fits returns an error if n bytes more exceed most. It sweeps only if that matters.
func (l *Limits) fits(a *account, n int64, most int) error {
	if a.kept.bytes+n > int64(most) {
		a.kept.sweep()
	}
	if a.kept.bytes+n <= int64(most) {
		return nil
	}
	return &Exceeded{Code: "too-much-kept", Again: a.kept.again(), Detail: fmt.Sprintf(
		"you have results and one-time tokens of %d bytes in the store, of %d that you may through this server: let some of them end, or forget them; nothing was done",
		a.kept.bytes, l.max.Kept)}
}

// Dropped reports that the store keeps nothing under a key any more, for any caller.
func (l *Limits) Dropped(key string) { l.shrink(key, 0) }

// Emptied reports that the store has deleted the payload of a one-time token.
func (l *Limits) Emptied(key string) { l.shrink(key, keptMore) }

func (l *Limits) shrink(key string, to int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, a := range l.callers { // no more than the configuration names
		e, there := a.kept.all[key]
		if !there {
			continue
		}
		if a.kept.drop(key); to > 0 {
			a.kept.put(key, entry{to, e.ends})
		}
		l.tidyLocked(name, a)
	}
}
