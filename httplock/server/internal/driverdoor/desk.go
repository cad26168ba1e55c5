package driverdoor

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// sessionMemory is how long a session lasts without a stream and without a place. In that time
// its client can open a stream, or another one after a failure.
const sessionMemory = 30 * time.Second

// A desk keeps the sessions of all clients.
type desk struct {
	house *door.House
	mux   *http.ServeMux
	life  context.Context // ends with close
	end   context.CancelFunc
	wg    sync.WaitGroup // the goroutines that follow watches

	mu       sync.Mutex // guards the rest, and all that belongs to sessions
	sessions map[sessionKey]*session
}

// A sessionKey names a client of a caller. Callers cannot reach the sessions of others.
type sessionKey struct{ caller, client string }

// A session has the places of one client, and the notices and losses not yet sent to it.
type session struct {
	desk *desk
	key  sessionKey

	watched map[lockinfo.LeaseID]*watched
	backlog *backlog
	stream  chan struct{} // closed when another stream replaces this one; nil without a stream
	forget  *time.Timer   // started when there is neither a stream nor a place
}

func newDesk(h *door.House, mux *http.ServeMux) *desk {
	d := &desk{house: h, mux: mux, sessions: map[sessionKey]*session{}}
	d.life, d.end = context.WithCancel(context.Background())
	return d
}

// close ends all watches and streams, and waits for the watches.
func (d *desk) close() {
	d.end()
	d.wg.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, s := range d.sessions {
		for _, w := range s.watched {
			w.endLocked()
		}
		s.forget.Stop()
		delete(d.sessions, key)
	}
}

// clientOf returns the key of the session of a request. A client without the header gets no
// notices.
func clientOf(r *door.Request) (key sessionKey, ok bool) {
	client := r.Header.Get(form.Client)
	return sessionKey{r.Caller.Name, client}, lockinfo.LeaseID(client).Valid()
}

// sessionLocked returns the session of a client, a new one if need be.
func (d *desk) sessionLocked(key sessionKey) *session {
	s := d.sessions[key]
	if s == nil {
		s = &session{desk: d, key: key, watched: map[lockinfo.LeaseID]*watched{}, backlog: newBacklog()}
		s.forget = time.AfterFunc(sessionMemory, s.forgotten)
		d.sessions[key] = s
	}
	return s
}

// leaveLocked starts the timer of a session without a place and without a stream.
func (s *session) leaveLocked() {
	if len(s.watched) == 0 && s.stream == nil {
		s.forget.Reset(sessionMemory)
	}
}

// forgotten removes the session, unless it is in use.
func (s *session) forgotten() {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	if len(s.watched) == 0 && s.stream == nil && s.desk.sessions[s.key] == s {
		delete(s.desk.sessions, s.key)
	}
}
