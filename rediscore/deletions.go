package rediscore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

const (
	// trackBatch is how many keys are read at once.
	trackBatch = 128
	// tellEvery is about how often the tracker reports one name. The key of a lock with many
	// waiters changes often for other reasons, too.
	tellEvery = time.Second
)

// A tracker has the server report, on a separate connection, when keys of exclusive leases are
// deleted, evicted or overwritten. The server reports one change for each time that the tracker has
// read the key. The tracker reads a key after each renewal. After a report the client checks the
// lease; the report itself proves no loss.
//
// If the client lacks the right, the protocol or the connection for that, it learns of a loss by
// its next renewal. A nil tracker does nothing.
type tracker struct {
	listener
	keys   keys.Space
	losses *driver.Losses
	wake   chan struct{} // holds one signal: there are keys to read

	mu       sync.Mutex // guards the rest
	ask      map[string]tracked
	known    map[string]tracked // keys that the server tracks
	reported map[string]struct{}
	since    time.Time // when reported was last cleared
}

// A tracked is what the tracker knows of a lease's key.
type tracked struct {
	name    string
	id      lockinfo.LeaseID
	asked   bool // a read is in flight
	changed bool // since the read was sent
}

func newTracker(conn Conn, keys keys.Space, life context.Context, losses *driver.Losses) *tracker {
	return &tracker{
		listener: listener{conn: conn, life: life}, keys: keys, losses: losses, wake: make(chan struct{}, 1),
		ask: map[string]tracked{}, known: map[string]tracked{}, reported: map[string]struct{}{},
	}
}

// renewing notes leases that are about to be renewed, because a renewal changes their keys.
func (t *tracker) renewing(reqs []driver.ExtendRequest) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range reqs {
		delete(t.known, t.keys.Lock(r.Name))
	}
}

// renewed notes leases that were renewed.
func (t *tracker) renewed(reqs []driver.ExtendRequest, errs []error) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, r := range reqs {
		if errs[i] == nil {
			t.ask[t.keys.Lock(r.Name)] = tracked{name: r.Name, id: r.LeaseID}
		}
	}
	t.wakeLocked()
}

// wakeLocked makes session read the keys in ask.
func (t *tracker) wakeLocked() {
	if len(t.ask) == 0 {
		return
	}
	t.start(t.session)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// wait returns when the session has ended, after the engine's life.
func (t *tracker) wait() {
	if t != nil {
		t.listener.wait()
	}
}

// session tracks keys on one connection until it breaks.
func (t *tracker) session(session Session) error {
	broken, err := session.Track(t.life, t.changed)
	if err != nil {
		return err
	}
	defer t.forget()
	for {
		select {
		case <-broken: //nolint:errcheck // why it broke does not matter
			return nil
		case <-t.life.Done():
			return nil
		case <-t.wake:
		}
		for keys := t.next(); len(keys) > 0; keys = t.next() {
			reply, err := session.Do(t.life, Command{Words: []string{"MGET"}, Keys: keys})
			values, _ := reply.([]any)
			if err != nil || len(values) != len(keys) {
				return err
			}
			for i, key := range keys {
				text, found := values[i].(string)
				t.answered(key, text, found)
			}
		}
	}
}

// next returns the keys to read now. From now on the server may report them.
func (t *tracker) next() (keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, k := range t.ask {
		if len(keys) == trackBatch {
			break
		}
		keys = append(keys, key)
		k.asked, k.changed = true, false
		t.known[key] = k
		delete(t.ask, key)
	}
	return keys
}

// answered handles the value that was read from a key.
func (t *tracker) answered(key, text string, found bool) {
	t.mu.Lock()
	k, known := t.known[key]
	if !known || !k.asked {
		t.mu.Unlock()
		return
	}
	v, ours := parseValue(text)
	_, _, several := parseGroup(text)
	lost := !found || ours && (v.id != k.id || v.released) || !ours && !several
	switch {
	case lost || several: // leases in a group come and go without a loss
		delete(t.known, key)
	case k.changed: // before or after the read: read it again
		delete(t.known, key)
		t.ask[key] = tracked{name: k.name, id: k.id}
	default:
		k.asked = false
		t.known[key] = k
	}
	t.mu.Unlock()
	if lost {
		t.tell(k.name)
	}
}

// changed runs in the connection's reading goroutine. Nil keys means all keys.
func (t *tracker) changed(keys []string) {
	if t.life.Err() != nil {
		return
	}
	var names []string
	t.mu.Lock()
	if keys == nil {
		keys = slices.Collect(maps.Keys(t.known))
	}
	for _, key := range keys {
		names = t.changedLocked(key, names)
	}
	t.mu.Unlock()
	if len(names) > 0 {
		go func() { // ends after the last report
			for _, name := range names {
				t.tell(name)
			}
		}()
	}
}

func (t *tracker) changedLocked(key string, names []string) []string {
	k, known := t.known[key]
	switch {
	case !known:
	case k.asked:
		k.changed = true
		t.known[key] = k
	default:
		delete(t.known, key)
		names = append(names, k.name)
	}
	return names
}

// tell reports a name as possibly lost, but not too often.
func (t *tracker) tell(name string) {
	t.mu.Lock()
	if now := time.Now(); now.Sub(t.since) > tellEvery {
		clear(t.reported)
		t.since = now
	}
	_, reported := t.reported[name]
	t.reported[name] = struct{}{}
	t.mu.Unlock()
	if !reported {
		t.losses.Tell(driver.Loss{Name: name})
	}
}

// forget clears the tracked keys when the server no longer reports them.
func (t *tracker) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.known)
}
