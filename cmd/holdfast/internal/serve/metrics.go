package serve

import (
	"net/http"
	"runtime"

	"github.com/holdfast-locks/holdfast/internal/exposition"
	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/problem"
)

// gauges are what is read when somebody asks.
func (s *Service) gauges(ready bool) []*exposition.Family {
	load := s.locks.Load()
	gauge := func(name, help string, value float64) *exposition.Family {
		f := exposition.NewGauge(name, help)
		f.Set(value)
		return f
	}
	flag := map[bool]float64{true: 1}
	all := []*exposition.Family{
		gauge("holdfast_http_requests_in_flight", "Requests that are not answered to their end at this moment, streams among them.", float64(s.requests.inFlight.Load())),
		gauge("holdfast_http_waiters", "Requests that wait for a lock at this moment.", float64(load.Waiters)),
		gauge("holdfast_http_streams", "Responses that go on at this moment: held locks, events, news.", float64(load.Streams)),
		gauge("holdfast_http_leases", "Leases that were asked for through this server and have not ended.", float64(load.Leases)),
		gauge("holdfast_ready", "1 if the store answers and the server does not drain, as /readyz says.", flag[ready]),
		gauge("holdfast_draining", "1 if the server is about to stop.", flag[s.draining.Load()]),
		gauge("go_goroutines", "Goroutines of the process.", float64(runtime.NumGoroutine())),
		gauge("process_start_time_seconds", "When the process was started, in seconds since 1970.", float64(s.started.UnixMilli())/1000),
	}
	if c := s.opts.Certificate; c != nil {
		all = append(all, gauge("holdfast_tls_certificate_expiry_timestamp_seconds", "When the certificate ends that is shown, in seconds since 1970.", float64(c.Expiry().Unix())))
	}
	for _, p := range ofProcess() {
		all = append(all, gauge(p.name, p.help, p.value))
	}
	build := exposition.NewGauge("holdfast_build_info", "1, with the version of the program and of Go.", "version", "goversion")
	build.Set(1, s.opts.Version, runtime.Version())
	return append(all, build)
}

// metrics answers with all that is counted.
func (s *Service) metrics(w http.ResponseWriter, r *http.Request) {
	families := append(s.events.Families(), s.requests.total, s.requests.duration)
	families = append(families, s.gauges(s.ready(r.Context()) == nil)...)
	w.Header().Set("Content-Type", exposition.ContentType)
	_, _ = w.Write(exposition.Append(nil, families...)) // a caller that is gone needs no answer
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
