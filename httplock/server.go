package httplock

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
)

// avoidFor is how long a server is avoided that cannot be asked, if there is another.
const avoidFor = 2 * time.Second

// A server is one of those that the engine may ask.
type server struct {
	name   string // for people
	urls   map[string]*url.URL
	heads  map[string][]byte // of short requests, by their methods
	talker *talker
	auth   []string // the header Authorization; nil if there is no token

	avoided atomic.Int64 // until when, as nanoseconds of the engine's clock
}

var methods = []string{
	form.Capable, form.Acquire, form.AcquireAll, form.Extend, form.Release, form.Inspect, form.Refresh, form.Downgrade, form.List,
	form.Break, form.Breaks, form.Complete, form.Recall, form.Forget, form.DescribeRecord, form.ListRecords, form.Deposit,
	form.Redeem, form.Peek, form.Revoke, form.Prune, form.Diagnose, form.History, form.Notices, form.Events,
}

func (e *Engine) newServer(a address) *server {
	s := &server{name: a.url.Host, urls: map[string]*url.URL{}, heads: map[string][]byte{}, talker: e.conns.talker(a)}
	if a.socket != "" {
		s.name = a.socket
	}
	if a.token != "" {
		s.auth = []string{"Bearer " + a.token}
	}
	for _, method := range methods {
		u := *a.url
		u.Path += form.Base + method
		s.urls[method] = &u
		s.heads[method] = s.head(&u)
	}
	return s
}

// head returns what the header of a request begins with, as package http writes it.
func (s *server) head(u *url.URL) []byte {
	header := http.Header{"Content-Type": contentType, "User-Agent": userAgent}
	if s.auth != nil {
		header["Authorization"] = s.auth
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\n", u.RequestURI(), u.Host)
	_ = header.Write(&b) // into memory
	return b.Bytes()
}

// clock is what avoided counts by.
func (e *Engine) clock() int64 { return int64(time.Since(e.began)) }

// chosen returns the server to ask. It stays the same as long as it can be asked, and
// then is another one, which it stays.
func (e *Engine) chosen() *server {
	if len(e.servers) == 1 {
		return e.servers[0]
	}
	at := e.current.Load()
	if now := e.clock(); e.servers[at].avoided.Load() > now {
		for i := 1; i < len(e.servers); i++ {
			next := (int(at) + i) % len(e.servers)
			if e.servers[next].avoided.Load() > now {
				continue
			}
			if e.current.CompareAndSwap(at, int64(next)) {
				e.notices.move()
			}
			return e.servers[e.current.Load()]
		}
	}
	return e.servers[at]
}

// avoid notes that a server cannot be asked for now. It reports whether there is another.
func (e *Engine) avoid(s *server) bool {
	if len(e.servers) == 1 {
		return false
	}
	s.avoided.Store(e.clock() + int64(avoidFor))
	return e.chosen() != s
}

// first draws the server that is asked first, so that the servers share the work.
func (e *Engine) first() {
	e.began = time.Now()
	e.current.Store(rand.Int64N(int64(len(e.servers))))
}
