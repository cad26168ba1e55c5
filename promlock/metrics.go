package promlock

import (
	"cmp"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/tally"
	"github.com/prometheus/client_golang/prometheus"
)

// namespace begins the names of all metrics.
const namespace = "holdfast"

// MaxNames is how many values the label name has at most, whatever NameLabel
// returns. Names for which there is no room have the value "other".
const MaxNames = tally.MaxNames

// Options are the options of New. Nil options are the defaults.
type Options struct {
	// NameLabel returns the value of the label name for the name of a lock, a do-once
	// key, a schedule, a collection of one-time tokens or a guarded resource. Nil:
	// there is no such label. It is called for every event, on one goroutine for each
	// client.
	//
	// FoldNames is a NameLabel. Any other should return few values as well: all after
	// the first MaxNames-1 are counted together.
	NameLabel func(name string) string
}

// FoldNames is a NameLabel: it folds numbers, UUIDs, dates and hexadecimal words,
// so that orders/42 counts as orders/*; see [tally.Fold].
func FoldNames(name string) string { return tally.Fold(name) }

// Metrics count the events of locks for Prometheus. The method Observe is an Observer, of
// one or of several clients, and Metrics are a prometheus.Collector, to be registered
// once. All methods are safe for concurrent use.
type Metrics struct {
	tally      *tally.Tally
	infos      []tally.CounterInfo // of counters
	counters   []*prometheus.CounterVec
	histograms []*prometheus.HistogramVec
	gauges     []gauge
	lastRun    *prometheus.GaugeVec
}

// A gauge is computed when it is read.
type gauge struct {
	tally.GaugeInfo
	desc *prometheus.Desc
}

// New returns Metrics that have counted nothing. It registers nothing.
func New(opts *Options) *Metrics {
	m := &Metrics{tally: tally.New(cmp.Or(opts, &Options{}).NameLabel), infos: tally.Counters()}
	for _, c := range m.infos {
		m.counters = append(m.counters, prometheus.NewCounterVec(
			prometheus.CounterOpts{Namespace: namespace, Name: c.Name + "_total", Help: c.Help + "."},
			m.labels(c.Mode, c.Label)))
	}
	for _, h := range tally.Histograms() {
		m.histograms = append(m.histograms, prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Namespace: namespace, Name: h.Name + "_seconds", Help: h.Help + ".", Buckets: h.Buckets},
			m.labels(true, "")))
	}
	for _, g := range tally.Gauges() {
		name := prometheus.BuildFQName(namespace, "", g.Name)
		if g.Unit == "seconds" {
			name += "_seconds"
		}
		m.gauges = append(m.gauges, gauge{g, prometheus.NewDesc(name, g.Help+".", m.labels(true, ""), nil)})
	}
	m.lastRun = prometheus.NewGaugeVec(
		prometheus.GaugeOpts{
			Namespace: namespace, Name: "last_run_timestamp_seconds",
			Help: "For when the last run of a schedule was due that this process has done.",
		},
		m.labels(false, ""))
	m.tally.AtStart(m.begin)
	return m
}

// labels returns the names of the labels of a metric, in the order of values.
func (m *Metrics) labels(mode bool, label string) []string {
	return m.values(tally.Group{Name: "name", Mode: "mode"}, mode, label, label)
}

// values returns the values of the labels of a metric.
func (m *Metrics) values(g tally.Group, mode bool, label, value string) []string {
	all := make([]string, 0, 3)
	if m.tally.Named() {
		all = append(all, g.Name)
	}
	if mode {
		all = append(all, g.Mode)
	}
	if label != "" {
		all = append(all, value)
	}
	return all
}

// Observe is the Observer of a client: holdfast.Options{Observer: metrics.Observe}.
func (m *Metrics) Observe(e holdfast.Event) {
	noted := m.tally.Note(e)
	if noted.Counter != tally.None {
		if noted.First {
			m.begin(m.infos[noted.Counter].Family, noted.Group)
		}
		m.counter(noted.Counter, noted.Group, noted.Value).Add(float64(noted.N))
	}
	if e.Kind == holdfast.RunDone {
		m.lastRun.WithLabelValues(m.values(noted.Group, false, "", "")...).Set(float64(e.Scheduled.Unix()))
	}
	if noted.Histogram != tally.NoHistogram {
		m.histograms[noted.Histogram].WithLabelValues(m.values(noted.Group, true, "", "")...).Observe(noted.Seconds)
	}
}

// counter returns the series of a counter.
func (m *Metrics) counter(c tally.Counter, g tally.Group, value string) prometheus.Counter {
	info := &m.infos[c]
	return m.counters[c].WithLabelValues(m.values(g, info.Mode, info.Label, value)...)
}

// begin makes every counter of a family 0 for a group, because Prometheus does not see
// the first step of a counter that begins with 1.
func (m *Metrics) begin(family tally.Family, g tally.Group) {
	family.Each(func(c tally.Counter, value string) { m.counter(c, g, value) })
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.counters {
		c.Describe(to)
	}
	for _, h := range m.histograms {
		h.Describe(to)
	}
	for _, g := range m.gauges {
		to <- g.desc
	}
	m.lastRun.Describe(to)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.counters {
		c.Collect(to)
	}
	for _, h := range m.histograms {
		h.Collect(to)
	}
	m.lastRun.Collect(to)
	for group, standing := range m.tally.Now() {
		values := m.values(group, true, "", "")
		for _, g := range m.gauges {
			to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.Value(standing), values...)
		}
	}
}
