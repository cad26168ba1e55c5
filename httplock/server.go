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

// avoidFor is how long the engine avoids a server that failed, if there is another.
const avoidFor = 2 * time.Second

// A server is one server of the URL.
type server struct {
	name   string // for people
	urls   map[string]*url.URL
	heads  map[string][]byte // of short requests, by their methods
	talker *talker
	auth   []string // the header Authorization; nil if there is no token

	avoided atomic.Int64 // until when, as nanoseconds of the engine's clock
}

var methods = []string{
	form.Capable, form.Acquire, form.Hold, form.AcquireAll, form.Extend, form.Release, form.Inspect, form.Refresh, form.Downgrade, form.List,
	form.Break, form.Breaks, form.Complete, form.Recall, form.Forget, form.DescribeRecord, form.ListRecords, form.Deposit,
	form.Redeem, form.Peek, form.Revoke, form.Prune, form.Diagnose, form.History, form.Notices, form.Events,
}

func (e *engine) newServer(a address) *server {
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
func (e *engine) clock() int64 { return int64(time.Since(e.began)) }

// chosen returns the current server. It changes when the current one is avoided.
func (e *engine) chosen() *server {
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

// avoid avoids a server for a while. It reports whether there is another.
func (e *engine) avoid(s *server) bool {
	if len(e.servers) == 1 {
		return false
	}
	s.avoided.Store(e.clock() + int64(avoidFor))
	return e.chosen() != s
}

// first draws the first server, so that the servers share the work.
func (e *engine) first() {
	e.began = time.Now()
	e.current.Store(rand.Int64N(int64(len(e.servers))))
}
