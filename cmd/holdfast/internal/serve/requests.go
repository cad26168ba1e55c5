package serve

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests counts requests and answers. No label has a value from outside: a route
// is one of those that the server has.
type requests struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	log      *slog.Logger // of each request; nil: none
}

func newRequests(log *slog.Logger) *requests {
	return &requests{
		log: log,
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "holdfast_http_requests_in_flight", Help: "Requests that are not answered to their end at this moment, streams among them.",
		}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_http_requests_total", Help: "Requests that were answered, by route and status.",
		}, []string{"route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "holdfast_http_request_duration_seconds",
			Help:    "For how long requests went on until their answers began, by route. What waits for a lock is among them, and of a stream its beginning.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route"}),
	}
}

// around counts the requests of h.
func (q *requests) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q.inFlight.Inc()
		defer q.inFlight.Dec()
		a := &answer{ResponseWriter: w, asked: time.Now()}
		defer q.note(a, r) // even if h panics, which is how it cuts a connection
		h.ServeHTTP(a, r)
	})
}

func (q *requests) note(a *answer, r *http.Request) {
	a.begin(http.StatusOK)
	route, status := r.Pattern, strconv.Itoa(a.status)
	if route == "" || route == "/" {
		route = "none"
	}
	q.total.WithLabelValues(route, status).Inc()
	q.duration.WithLabelValues(route).Observe(a.began.Seconds())
	if q.log != nil {
		// The path is left out, and so is the query: names of locks are in them.
		q.log.Info("request", "route", route, "status", a.status, "bytes", a.bytes, "remote", r.RemoteAddr,
			"proto", r.Proto, "began_ms", a.began.Milliseconds(), "took_ms", time.Since(a.asked).Milliseconds())
	}
}

// An answer notes when it began, and as what.
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
