package serve

import (
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// requests counts requests and responses. No label has a value that a client chose: each route is
// a pattern of the server.
type requests struct {
	total    family
	duration family
	inFlight atomic.Int64
	log      *slog.Logger // logs each request; nil: no log
}

func newRequests(log *slog.Logger) *requests {
	return &requests{
		log:   log,
		total: family{name: "holdfast_http_requests_total", help: "Requests that were answered, by route and status."},
		duration: family{
			name:   "holdfast_http_request_duration_seconds",
			help:   "Time until the answer began, by route. It includes the wait for a lock, and not the rest of a stream.",
			bounds: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		},
	}
}

// write writes what was counted.
func (q *requests) write(p *page) {
	q.total.write(p)
	q.duration.write(p)
	p.gauge("holdfast_http_requests_in_flight", "Requests whose answers have not ended, streams included.", float64(q.inFlight.Load()))
}

// around returns h with its requests counted.
func (q *requests) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q.inFlight.Add(1)
		defer q.inFlight.Add(-1)
		a := &answer{ResponseWriter: w, asked: time.Now()}
		defer q.note(a, r) // even if h panics, as it does to cut a connection
		h.ServeHTTP(a, r)
	})
}

func (q *requests) note(a *answer, r *http.Request) {
	a.begin(http.StatusOK)
	route, status := r.Pattern, strconv.Itoa(a.status)
	if route == "" || route == "/" {
		route = "none"
	}
	q.total.add(labels("route", route, "status", status), 1)
	q.duration.observe(labels("route", route), a.began.Seconds())
	if q.log != nil {
		// The path and the query are left out, because they contain names of locks.
		q.log.Info("request", "route", route, "status", a.status, "bytes", a.bytes, "remote", r.RemoteAddr,
			"proto", r.Proto, "began_ms", a.began.Milliseconds(), "took_ms", time.Since(a.asked).Milliseconds())
	}
}

// An answer records the status of a response, when it began and its size.
type answer struct {
	http.ResponseWriter
	asked  time.Time
	began  time.Duration // after asked; valid once status is not 0
	status int
	bytes  int64
}

func (a *answer) begin(status int) {
	if a.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		a.status, a.began = status, time.Since(a.asked)
	}
}

func (a *answer) WriteHeader(status int) {
	a.begin(status)
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// FlushError and Unwrap are for http.ResponseController.
func (a *answer) FlushError() error {
	a.begin(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
