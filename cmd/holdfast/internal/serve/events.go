package serve

import (
	"slices"

	"github.com/holdfast-locks/holdfast/internal/tally"
	"github.com/holdfast-locks/holdfast/observe"
)

// events count the events of the server's leases: the metrics of package promlock, without
// names of locks.
type events struct {
	tally      *tally.Tally
	infos      []tally.CounterInfo // of counters
	counters   []*family
	histograms []*family
}

func newEvents() *events {
	e := &events{tally: tally.New(nil), infos: tally.Counters()}
	for _, c := range e.infos {
		e.counters = append(e.counters, &family{name: "holdfast_" + c.Name + "_total", help: c.Help + "."})
	}
	for _, h := range tally.Histograms() {
		e.histograms = append(e.histograms, &family{name: "holdfast_" + h.Name + "_seconds", help: h.Help + ".", bounds: h.Buckets})
	}
	// Prometheus does not see the first step of a counter that begins with 1.
	e.tally.AtStart(func(f tally.Family, g tally.Group) {
		f.Each(func(c tally.Counter, value string) { e.add(c, g, value, 0) })
	})
	return e
}

// add adds n to a counter.
func (e *events) add(c tally.Counter, g tally.Group, value string, n int) {
	var all []string
	if e.infos[c].Mode {
		all = append(all, "mode", g.Mode)
	}
	if e.infos[c].Label != "" {
		all = append(all, e.infos[c].Label, value)
	}
	e.counters[c].add(labels(all...), float64(n))
}

// observe is the Observer of the server.
func (e *events) observe(event observe.Event) {
	m := e.tally.Note(event)
	if m.Counter != tally.None {
		e.add(m.Counter, m.Group, m.Value, m.N)
	}
	if m.Histogram != tally.NoHistogram {
		e.histograms[m.Histogram].observe(labels("mode", m.Mode), m.Seconds)
	}
}

// write writes what was counted, and the leases and waits of this moment.
func (e *events) write(p *page) {
	for _, f := range slices.Concat(e.counters, e.histograms) {
		f.write(p)
	}
	now := e.tally.Now()
	for _, g := range tally.Gauges() {
		name := "holdfast_" + g.Name
		if g.Unit == "seconds" {
			name += "_seconds"
		}
		p.head(name, "gauge", g.Help+".")
		for _, mode := range tally.Modes() {
			p.sample(name, labels("mode", mode), g.Value(now[tally.Group{Mode: mode}]))
		}
	}
}
