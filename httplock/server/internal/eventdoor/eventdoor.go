// Package eventdoor has the stream of events, and what is counted of them: GET /v1/events
// and GET /v1/stats.
//
// # How it is made
//
// The server hears of the events of its store from its engine, from the beginning on, and
// keeps the latest in a ring. A reader is a place in that ring, and costs nothing else: if
// it falls behind the ring, or comes back too late, it is told that there is a gap.
// Beside the ring there are counts of the last 15 minutes, in buckets of 5 seconds.
package eventdoor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	// heartbeat is the longest time without a line.
	heartbeat = 15 * time.Second

	// patience is how long a reader may take for what is written to it at once.
	patience = 20 * time.Second

	// atOnce is how many events are taken from the ring at once.
	atOnce = 64
)

// head begins a stream: a reader that is cut off comes back after a second.
const head = "retry: 1000\n\n"

// Routes adds GET /v1/events and GET /v1/stats. deafen ends what it hears.
func Routes(mux *http.ServeMux, h *door.House) (deafen func()) {
	historian := h.Features.Historian
	if historian == nil {
		off := h.Handle(func(http.ResponseWriter, *door.Request) error { return errOff })
		mux.Handle("GET /v1/events", off)
		mux.Handle("GET /v1/stats", off)
		return func() {}
	}
	events, counts := newRing(ringSize), newStats()
	mux.Handle("GET /v1/events", h.Handle(events.serve))
	mux.Handle("GET /v1/stats", h.Handle(counts.serve))
	return historian.OnEvent(func(e driver.Event) {
		if events.add(e) {
			counts.add(e)
		}
	})
}

var errOff error = &door.Refusal{
	Status: http.StatusNotImplemented, Code: "unsupported",
	Detail: "the store keeps no history, so there are no events: open it with history=1 in the query of its URL, at this server and wherever else it is opened",
}

// serve answers GET /v1/events.
func (g *ring) serve(w http.ResponseWriter, r *door.Request) error {
	prefix, err := prefixOf(r)
	if err != nil {
		return err
	}
	if err := r.NewWork(); err != nil {
		return err
	}
	leave, err := r.House.Limits.Stream(r.Caller)
	if err != nil {
		return err
	}
	defer leave()
	v := reader{r: r, ring: g, prefix: prefix, w: w, control: http.NewResponseController(w)}
	v.read(r.Header.Get("Last-Event-ID"))
	return nil
}

// prefixOf returns which names the caller wants to hear of. It need not be allowed all that
// begin with the prefix: it hears of those that it may see.
func prefixOf(r *door.Request) (string, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", door.Invalid("the query is not one: " + err.Error())
	}
	for name, values := range q {
		if name != "prefix" || len(values) != 1 {
			return "", door.Invalid(fmt.Sprintf("%s is %q in the query: want one prefix, and nothing else", name, values))
		}
	}
	prefix := q.Get("prefix")
	overlaps := func(p string) bool { return strings.HasPrefix(p, prefix) || strings.HasPrefix(prefix, p) }
	c := r.Caller
	if !c.Rights.Has(caller.Read) || c.Prefixes != nil && !slices.ContainsFunc(c.Prefixes, overlaps) {
		return "", door.Forbidden(caller.Read, prefix)
	}
	return prefix, nil
}

// A reader is one answer.
type reader struct {
	r       *door.Request
	ring    *ring
	prefix  string
	at      uint64 // of the next event in the ring
	w       http.ResponseWriter
	control *http.ResponseController
	text    []byte // that was not written yet
}

// read writes events until the reader hangs up, is too slow, or the server drains. After
// last, unless it is empty, it goes on without a gap, or says that there is one.
func (v *reader) read(last string) {
	_ = v.control.SetReadDeadline(time.Time{}) // what the server allows for a request must not end a stream
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	v.w.WriteHeader(http.StatusOK)
	v.text = append(v.text, head...)
	at, known := v.ring.place(last)
	if v.at = at; !known {
		v.say(entry{}, time.Now())
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		some, more, gap := v.ring.from(&v.at, atOnce)
		if gap {
			v.say(entry{}, time.Now())
		}
		for _, e := range some {
			if v.sees(e) {
				v.say(e, time.Now())
			}
		}
		if v.flush() != nil {
			return
		}
		if len(some) == atOnce {
			continue
		}
		select {
		case <-more:
		case <-beat.C:
			v.text = append(v.text, ":\n\n"...) // a comment, which keeps the connection open
		case <-v.r.Context().Done():
			return
		case <-v.r.House.Draining:
			return
		}
	}
}

// sees reports whether an event is for the reader. A gap is for everybody.
func (v *reader) sees(e entry) bool {
	return e.Kind == driver.EventGap || !hidden(e.Name) && strings.HasPrefix(e.Name, v.prefix) && v.r.Shows(caller.Read, e.Name)
}

// hidden reports whether nobody is told what happens to a name: it is the servers' own, or
// one that a diagnosis tries, which a server begins by itself while somebody looks on.
func hidden(name string) bool {
	return door.Reserved(name) || strings.HasPrefix(name, driver.ProbePrefix)
}

// say adds an event to what is to be written.
func (v *reader) say(e entry, now time.Time) {
	if e.ID != "" {
		e.Ago += now.Sub(e.heard)
		v.text = append(append(append(v.text, "id: "...), e.ID...), '\n')
	}
	data, err := json.Marshal(wire.HistoryEventOf(e.Event))
	if err != nil {
		panic(err) // what is in it are strings and numbers
	}
	v.text = append(append(append(v.text, "data: "...), data...), "\n\n"...)
}

// flush writes what there is. An error says that the reader is gone, or too slow.
func (v *reader) flush() error {
	if len(v.text) == 0 {
		return nil
	}
	_ = v.control.SetWriteDeadline(time.Now().Add(patience)) // where there is none, write waits
	_, err := v.w.Write(v.text)
	v.text = v.text[:0]
	if err == nil {
		err = v.control.Flush()
	}
	return err
}
