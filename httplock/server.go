package httplock

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
)

// avoidFor is how long the engine avoids a server that failed, if there is another.
const avoidFor = 2 * time.Second

// A server is one server of the URL.
type server struct {
	name   string // for people
	url    *url.URL
	before string // the text of a short request before the method, as net/http writes it
	after  string // the text after the method
	talker *talker
	header http.Header // of all requests

	avoided atomic.Int64 // until this time of engine.clock
}

func (e *engine) newServer(a address) *server {
	s := &server{
		name: cmp.Or(a.socket, a.url.Host), url: a.url, talker: e.conns.talker(a),
		header: http.Header{"Content-Type": {form.JSON}, "User-Agent": {"holdfast"}},
	}
	if a.token != "" {
		s.header.Set("Authorization", "Bearer "+a.token)
	}
	var lines strings.Builder
	_ = s.header.Write(&lines) // into memory
	s.before = "POST " + a.url.EscapedPath() + form.Base
	s.after = " HTTP/1.1\r\nHost: " + a.url.Host + "\r\n" + lines.String()
	return s
}

// clock returns the time for server.avoided, in nanoseconds.
func (e *engine) clock() int64 { return int64(time.Since(e.began)) }

// chosen returns the current server. If the engine avoids that one, the next becomes the
// current server. If it avoids all of them, it is the one that it has avoided for longest: that
// one may have come back.
func (e *engine) chosen() *server {
	if len(e.servers) == 1 {
		return e.servers[0]
	}
	at, now := e.current.Load(), e.clock()
	best, soonest := at, int64(math.MaxInt64)
	for i := range e.servers {
		next := (int(at) + i) % len(e.servers)
		until := e.servers[next].avoided.Load()
		if until < soonest {
			best, soonest = int64(next), until
		}
		if until <= now {
			break
		}
	}
	if best != at && e.current.CompareAndSwap(at, best) {
		e.notices.move()
	}
	return e.servers[e.current.Load()]
}

// avoid makes the engine avoid s for a while. It reports whether there is another server to use.
func (e *engine) avoid(s *server) bool {
	if len(e.servers) == 1 {
		return false
	}
	s.avoided.Store(e.clock() + int64(avoidFor))
	return e.chosen() != s
}
