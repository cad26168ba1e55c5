package serve

import (
	"context"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/wire"
)

// metrics returns what answers with all that is counted.
func (s *Service) metrics() http.HandlerFunc {
	all := prometheus.NewRegistry()
	all.MustRegister(s.events, s.requests.total, s.requests.duration, s.requests.inFlight,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, value func() float64) {
		all.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("holdfast_http_waiters", "Requests that wait for a lock at this moment.", func() float64 { return float64(s.locks.Load().Waiters) })
	gauge("holdfast_http_streams", "Responses that go on at this moment: held locks, events, news.", func() float64 { return float64(s.locks.Load().Streams) })
	gauge("holdfast_http_leases", "Leases that were asked for through this server and have not ended.", func() float64 { return float64(s.locks.Load().Leases) })
	gauge("holdfast_ready", "1 if the store answers and the server does not drain, as /readyz says.",
		func() float64 { return flag(s.ready(context.Background()) == nil) })
	gauge("holdfast_draining", "1 if the server is about to stop.", func() float64 { return flag(s.draining.Load()) })
	if c := s.opts.Certificate; c != nil {
		gauge("holdfast_tls_certificate_expiry_timestamp_seconds", "When the certificate ends that is shown, in seconds since 1970.",
			func() float64 { return float64(c.Expiry().Unix()) })
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "holdfast_build_info", Help: "1, with the version of the program and of Go.",
		ConstLabels: prometheus.Labels{"version": s.opts.Version, "goversion": runtime.Version()},
	})
	build.Set(1)
	all.MustRegister(build)
	if _, told := s.locks.Losses(); told {
		s.countLosses(all)
	}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{}).ServeHTTP
}

// countLosses adds what the store has told of.
func (s *Service) countLosses(all *prometheus.Registry) {
	counter := func(name, help string, labels prometheus.Labels, value func(server.Losses) int) {
		all.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 {
			l, _ := s.locks.Losses()
			return float64(value(l))
		}))
	}
	for end, value := range map[string]func(server.Losses) int{
		"expired": func(l server.Losses) int { return l.Expired },
		"lost":    func(l server.Losses) int { return l.Lost },
		"broken":  func(l server.Losses) int { return l.Broken },
	} {
		counter("holdfast_store_losses_total", "Leases in the store, of all programs, that ended before their holders gave them back. There may be more after holdfast_store_missed_total has grown.",
			prometheus.Labels{"end": end}, value)
	}
	counter("holdfast_store_missed_total", "How often the server was cut off from what happens in the store: each time there may have been more losses than are counted.",
		nil, func(l server.Losses) int { return l.Missed })
}

// flag returns 1 for true.
func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// getOnly refuses what is not GET or HEAD.
func getOnly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			problem.Write(w, wire.Problem{Status: http.StatusMethodNotAllowed, Code: "method-not-allowed", Detail: "send GET"})
			return
		}
		h(w, r)
	}
}
