package driverdoor

import (
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// sessionMemory is how long a session is kept that has neither a stream nor a place. Its
// client opens a stream meanwhile, or another after one that broke.
const sessionMemory = 30 * time.Second

// A desk has the sessions of all clients.
type desk struct {
	house   *door.House
	closed  chan struct{}
	closing func()
	wg      sync.WaitGroup // of the watches that are followed

	mu       sync.Mutex // guards the rest, and all that belongs to sessions
	sessions map[sessionKey]*session
}

// A sessionKey names a client. Nobody gets at the news of another caller.
type sessionKey struct{ caller, client string }

// A session is what one client waits for, and the news that it has not been told yet.
type session struct {
	desk *desk
	key  sessionKey

	watched map[driver.LeaseID]*watched
	notices map[driver.LeaseID]driver.Notice // not sent; of each lease ID the latest, but a grant gives way to a grant only
	losses  []*form.Loss                     // not sent
	wake    chan struct{}                    // holds one: there is news
	stream  chan struct{}                    // closed when another stream takes the place of this one; nil: there is none
	forget  *time.Timer                      // runs while there is neither a stream nor a place
}

func newDesk(h *door.House) *desk {
	d := &desk{house: h, closed: make(chan struct{}), sessions: map[sessionKey]*session{}}
	d.closing = sync.OnceFunc(func() { close(d.closed) })
	return d
}

// close ends all watches and streams, and returns when they have ended.
func (d *desk) close() {
	d.closing()
	d.wg.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, s := range d.sessions {
		for _, w := range s.watched {
			w.watch.Stop()
		}
		if s.forget != nil {
			s.forget.Stop()
		}
		delete(d.sessions, key)
	}
}

// isClosedLocked reports whether nothing may begin any more.
func (d *desk) isClosedLocked() bool {
	select {
	case <-d.closed:
		return true
	default:
		return false
	}
}

// clientOf returns the key of the session that a request belongs to. A client that gives
// no name hears of nothing.
func clientOf(r *door.Request) (key sessionKey, ok bool) {
	client := r.Header.Get(form.Client)
	return sessionKey{r.Caller.Name, client}, driver.LeaseID(client).Valid()
}

// sessionLocked returns the session of a client, which it makes if there is none.
func (d *desk) sessionLocked(key sessionKey) *session {
	s := d.sessions[key]
	if s == nil {
		s = &session{
			desk: d, key: key, watched: map[driver.LeaseID]*watched{}, notices: map[driver.LeaseID]driver.Notice{},
			wake: make(chan struct{}, 1),
		}
		d.sessions[key] = s
	}
	return s
}

// leaveLocked begins to forget the session if nothing is left of it.
func (s *session) leaveLocked() {
	if len(s.watched) > 0 || s.stream != nil {
		return
	}
	if s.forget == nil {
		s.forget = time.AfterFunc(sessionMemory, s.forgotten)
		return
	}
	s.forget.Reset(sessionMemory)
}

// forgotten ends the session, unless it was used again meanwhile.
func (s *session) forgotten() {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	if len(s.watched) == 0 && s.stream == nil && s.desk.sessions[s.key] == s {
		delete(s.desk.sessions, s.key)
	}
}

// tell keeps a notice for the stream.
func (s *session) tell(id driver.LeaseID, notice driver.Notice) {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	if unread, ok := s.notices[id]; !ok || notice.Token != 0 || unread.Token == 0 {
		s.notices[id] = notice
	}
	s.wakeLocked()
}

func (s *session) wakeLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// mostLosses bounds what is kept of losses for a stream that is slow (INVARIANT I11).
const mostLosses = 4096

// lose keeps a loss for the stream.
func (s *session) lose(loss driver.Loss) {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	if len(s.losses) < mostLosses { // of the others a renewal tells
		s.losses = append(s.losses, form.LossOf(loss))
	}
	s.wakeLocked()
}

// takeLocked returns the news that was not sent, and forgets it.
func (s *session) takeLocked() (all []form.Message) {
	for id, notice := range s.notices {
		all = append(all, form.Message{LeaseID: id, Token: notice.Token})
	}
	clear(s.notices)
	for _, loss := range s.losses {
		all = append(all, form.Message{Loss: loss})
	}
	s.losses = nil
	return all
}
