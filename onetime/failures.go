package onetime

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A callerKey is the hash of a caller's name, so that long names cost no more
// memory than short ones, and no name is kept.
type callerKey [sha256.Size]byte

// failures limits the failed redeems of each caller with a token bucket. An
// attempt that fails takes a token from it. An attempt is admitted only if there
// is a token for it and for every attempt under way.
type failures struct {
	limit FailureLimit

	mu      sync.Mutex // guards the rest
	callers map[callerKey]*caller
}

// A caller has failed recently, or has an attempt under way.
type caller struct {
	// full is when the bucket is full again: each failure moves it by
	// FailureLimit.Every.
	full  time.Time
	asks  int           // attempts under way
	ended chan struct{} // closed when an attempt ends; nil if no other attempt waits for that
}

// enter admits an attempt, which must call leave, or returns a
// *TooManyAttemptsError or ctx's error. It waits while the attempts under way
// could use up the bucket.
func (f *failures) enter(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	key := callerKey(sha256.Sum256([]byte(name)))
	for {
		ended, err := f.tryEnter(key, time.Now())
		if err != nil || ended == nil {
			return err
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return ask.ContextError(ctx)
		}
	}
}

// tryEnter admits an attempt, or returns an error, or a channel to wait for.
func (f *failures) tryEnter(key callerKey, now time.Time) (ended <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.callers[key]
	if c == nil {
		f.makeRoomLocked()
		c = &caller{}
		f.callers[key] = c
	}
	debt := max(c.full.Sub(now), 0)
	left := int((time.Duration(f.limit.Burst)*f.limit.Every - debt) / f.limit.Every)
	switch {
	case c.asks < left:
		c.asks++
		return nil, nil
	case left < 1:
		return nil, &TooManyAttemptsError{RetryAfter: debt - time.Duration(f.limit.Burst-1)*f.limit.Every}
	}
	if c.ended == nil {
		c.ended = make(chan struct{})
	}
	return c.ended, nil
}

// leave ends an attempt that was admitted.
func (f *failures) leave(name string, failed bool) {
	if name == "" {
		return
	}
	key, now := callerKey(sha256.Sum256([]byte(name))), time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.callers[key] // it is there: a caller with an attempt under way is not forgotten
	if c.asks--; c.ended != nil {
		close(c.ended)
		c.ended = nil
	}
	if c.full.Before(now) {
		c.full = now
	}
	if failed {
		c.full = c.full.Add(f.limit.Every)
	}
	if c.asks == 0 && !c.full.After(now) {
		delete(f.callers, key)
	}
}

// forgetSample is how many callers makeRoomLocked compares.
const forgetSample = 8

// makeRoomLocked forgets a caller if there are MaxCallers: of a few random callers, the one
// with the fewest failures. Callers with attempts under way stay, so their number is not
// bounded by MaxCallers.
func (f *failures) makeRoomLocked() {
	if len(f.callers) < f.limit.MaxCallers {
		return
	}
	var least callerKey
	var leastFull time.Time
	sample := 0
	for key, c := range f.callers { // in random order
		if c.asks > 0 {
			continue
		}
		if sample == 0 || c.full.Before(leastFull) {
			least, leastFull = key, c.full
		}
		if sample++; sample == forgetSample {
			break
		}
	}
	if sample > 0 {
		delete(f.callers, least)
	}
}
