// Package eventdoor serves the stream of events and their statistics: GET /v1/events and
// GET /v1/stats.
//
// # How it is made
//
// The engine reports all events of the store, and the server keeps the latest in a ring. A
// reader is an index in that ring, and costs little else. A reader that is too slow, or
// returns too late, gets an event for the gap. Statistics count the last 15 minutes, hour and
// day, each in 180 buckets. A lookout finds leases that have ended without an event.
package eventdoor

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/header"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	// heartbeat is the longest time without a line.
	heartbeat = 15 * time.Second

	// patience is how long a reader may take for one write.
	patience = 20 * time.Second

	// pause is the shortest time between two writes to a reader that keeps up. Events in
	// between share a write. From 11 readers on, each reader adds pauseEach, up to pauseMost.
	// Nearly all the cost of a reader is the system calls of its writes; with these values a
	// server makes 200 a second for up to 200 readers.
	pause     = 50 * time.Millisecond
	pauseEach = 5 * time.Millisecond
	pauseMost = time.Second

	// atOnce is how many events are taken from the ring at once.
	atOnce = 256
)

// head begins a stream. It makes a reader that is cut off reconnect after a second.
const head = "retry: 1000\n\n"

// gapText is sent to a reader that may have missed events.
const gapText = "data: {\"event\":\"gap\"}\n\n"

// Routes adds GET /v1/events and GET /v1/stats. deafen stops listening to the engine. total
// returns the counts; it is nil for a store without history.
func Routes(mux *http.ServeMux, h *door.House) (deafen func(), total func() Totals) {
	historian := h.Features.Historian
	if historian == nil {
		off := h.Handle(func(http.ResponseWriter, *door.Request) error { return errOff })
		mux.Handle("GET /v1/events", off)
		mux.Handle("GET /v1/stats", off)
		return func() {}, nil
	}
	events, counts := newRing(ringSize), newStats()
	mux.Handle("GET /v1/events", h.Handle(events.serve))
	mux.Handle("GET /v1/stats", h.Handle(counts.serve))
	var look *lookout
	heard := func(e lockinfo.HistoryEvent) {
		if events.add(e) {
			counts.add(e)
			look.hear(e)
		}
	}
	look = &lookout{house: h, found: heard, missed: counts.miss, names: map[string]*watched{}}
	end := h.Go("lookout", look.run)
	stop := historian.OnEvent(heard)
	return func() {
		end()
		stop()
	}, counts.total
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
	v := reader{r: r, ring: g, prefix: prefix, out: door.NewStream(w, "text/event-stream", patience)}
	v.all = prefix == "" && r.Caller.MayAll(caller.Read, "")
	v.zipped = v.all && header.TakesGzip(r.Header)
	g.readers.Add(1)
	defer g.readers.Add(-1)
	w.Header().Add("Vary", "Accept-Encoding")
	if v.zipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	v.begin(r.Header.Get("Last-Event-ID"))
	if v.read() && v.zipped {
		v.text = v.zip.end(v.text)
		_ = v.flush()
	}
	return nil
}

// prefixOf returns the prefix of the requested names. A caller that may see only some of them
// gets the events of those.
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

// A reader is one response to GET /v1/events.
type reader struct {
	r      *door.Request
	ring   *ring
	prefix string
	all    bool   // it sees all names
	at     uint64 // of the next event in the ring
	out    door.Stream
	text   []byte // not written yet
	shared []byte // to be written after text; read-only
	zipped bool   // it accepts gzip and sees all names: text for one reader alone is not worth a compressor
	zip    gzipped
}

// begin begins a stream after the event with the ID last. If the ring does not have it, the
// stream begins with an event for a gap. An empty last means the latest event.
func (v *reader) begin(last string) {
	if v.zipped {
		v.text = append(v.text, gzipHead...)
	}
	v.add(head)
	at, known := v.ring.place(last)
	if v.at = at; !known {
		v.add(gapText)
	}
}

// add adds a text for this reader alone.
func (v *reader) add(text string) {
	if v.zipped {
		v.text = v.zip.addOwn(v.text, text)
		return
	}
	v.text = append(v.text, text...)
}

// read writes events until the reader hangs up, is too slow or is revoked, or the server
// drains. It reports whether the reader is still connected.
func (v *reader) read() bool {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	pace := time.NewTimer(pause)
	defer pace.Stop()
	again := time.NewTicker(door.LookAgain / 4)
	defer again.Stop()
	for {
		was := v.at
		whole, more := v.next()
		if v.flush() != nil {
			return false
		}
		if v.r.Revoked() { // even if events never pause
			return true
		}
		if !whole {
			continue
		}
		if v.at != was { // the events until then share a write, at the same time for all readers
			more = nil
			step := v.ring.step()
			pace.Reset(step - time.Since(v.ring.began)%step)
		}
		select {
		case <-more:
		case <-pace.C:
		case <-beat.C:
			v.add(":\n\n") // a comment, which keeps the connection open
		case <-again.C:
		case <-v.r.Context().Done():
			return false
		case <-v.r.House.Draining:
			return true
		}
	}
}

// next adds the next events to the text to be written. whole reports that there are no more
// events now. more is closed when there are.
func (v *reader) next() (whole bool, more <-chan struct{}) {
	if v.all {
		c, whole, more, lost := v.ring.all(&v.at)
		if lost {
			v.add(gapText)
		}
		switch {
		case c == nil || len(c.text) == 0: // all of it is hidden
		case v.zipped:
			v.zip.add(c.text)
			v.shared = c.blocks()
		default:
			v.shared = c.text
		}
		return whole, more
	}
	some, more, lost := v.ring.from(&v.at, atOnce)
	if lost {
		v.add(gapText)
	}
	now := time.Now()
	for i := range some {
		if v.sees(&some[i]) {
			v.text = some[i].appendTo(v.text, now)
		}
	}
	return len(some) < atOnce, more
}

// sees reports whether an event is for the reader. A gap is for everybody.
func (v *reader) sees(e *entry) bool {
	return e.Kind == lockinfo.HistoryGap || !hidden(e.Name) && strings.HasPrefix(e.Name, v.prefix) && v.r.Shows(caller.Read, e.Name)
}

// hidden reports whether no reader sees the events of a name: servers or a diagnosis use the
// name themselves.
func hidden(name string) bool {
	return door.Reserved(name) || strings.HasPrefix(name, driver.ProbePrefix)
}

// flush writes the pending text. It fails if the reader is gone, or too slow.
func (v *reader) flush() error {
	if len(v.text)+len(v.shared) == 0 {
		return nil
	}
	err := v.out.Send(v.text, v.shared)
	v.text, v.shared = v.text[:0], nil
	return err
}
