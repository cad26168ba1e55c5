package serve

import (
	"net/http"
	"runtime"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/wire"
)

// metrics serves all metrics of the server.
func (s *Service) metrics(w http.ResponseWriter, r *http.Request) {
	p := &page{}
	s.events.write(p)
	s.requests.write(p)
	load := s.locks.Load()
	p.gauge("holdfast_http_waiters", "Requests that wait for a lock.", float64(load.Waiters))
	p.gauge("holdfast_http_streams", "Responses that have not ended: held locks, events, news.", float64(load.Streams))
	p.gauge("holdfast_http_leases", "Leases of requests to this server that have not ended.", float64(load.Leases))
	p.gauge("holdfast_ready", "1 if the store answers and the server does not drain, like /readyz.", flag(s.ready(r.Context()) == nil))
	p.gauge("holdfast_draining", "1 if the server drains before it stops.", flag(s.draining.Load()))
	if c := s.opts.Certificate; c != nil {
		p.gauge("holdfast_tls_certificate_expiry_timestamp_seconds", "When the current certificate expires, in seconds since 1970.", seconds(c.Expiry()))
	}
	p.head("holdfast_build_info", "gauge", "1, with the versions of holdfast and Go.")
	p.sample("holdfast_build_info", labels("goversion", runtime.Version(), "version", s.opts.Version), 1)
	if losses, known := s.locks.Losses(); known {
		writeLosses(p, losses)
	}
	writeProcess(p, s.started)
	w.Header().Set("Content-Type", pageType)
	_, _ = w.Write(p.Bytes())
}

// writeLosses writes the losses in the store's events.
func writeLosses(p *page, losses server.Losses) {
	const name = "holdfast_store_losses_total"
	p.head(name, "counter", "Leases of all programs that ended before their holders released them. There may have been more if holdfast_store_missed_total has grown.")
	p.sample(name, labels("end", "broken"), float64(losses.Broken))
	p.sample(name, labels("end", "expired"), float64(losses.Expired))
	p.sample(name, labels("end", "lost"), float64(losses.Lost))
	p.counter("holdfast_store_missed_total", "How often the server has missed events of the store, with losses that are not counted.", float64(losses.Missed))
}

// flag returns 1 for true and 0 for false.
func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// getOnly refuses methods other than GET and HEAD.
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
