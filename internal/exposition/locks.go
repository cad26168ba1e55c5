package exposition

import (
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/observe/tally"
)

// namespace begins the names of all metrics.
const namespace = "holdfast_"

// Locks are the metrics of package promlock. Observe is an Observer.
type Locks struct {
	tally      *tally.Tally
	infos      []tally.CounterInfo
	counters   []*Family
	histograms []*Family
	gauges     []*Family
	values     []tally.GaugeInfo // of gauges
	lastRun    *Family
}

// NewLocks returns Locks that have counted nothing. nameLabel is that of
// promlock.Options.
func NewLocks(nameLabel func(name string) string) *Locks {
	l := &Locks{tally: tally.New(nameLabel), infos: tally.Counters(), values: tally.Gauges()}
	for _, c := range l.infos {
		l.counters = append(l.counters, NewCounter(namespace+c.Name+"_total", c.Help+".", l.labels(c.Mode, c.Label)...))
	}
	for _, h := range tally.Histograms() {
		l.histograms = append(l.histograms, NewHistogram(namespace+h.Name+"_seconds", h.Help+".", h.Buckets, l.labels(true, "")...))
	}
	for _, g := range l.values {
		name := namespace + g.Name
		if g.Unit == "seconds" {
			name += "_seconds"
		}
		l.gauges = append(l.gauges, NewGauge(name, g.Help+".", l.labels(true, "")...))
	}
	l.lastRun = NewGauge(namespace+"last_run_timestamp_seconds", "For when the last run of a schedule was due that this process has done.", l.labels(false, "")...)
	l.tally.AtStart(l.begin)
	return l
}

// labels returns what tells the series of a metric apart.
func (l *Locks) labels(mode bool, label string) []string {
	return l.of(tally.Group{Name: "name"}, mode, "mode", label, label)
}

// of returns the values of these labels for a group. Where there is no label, value is
// empty.
func (l *Locks) of(g tally.Group, mode bool, modeValue, label, value string) (all []string) {
	if l.tally.Named() {
		all = append(all, g.Name)
	}
	if mode {
		all = append(all, modeValue)
	}
	if label != "" {
		all = append(all, value)
	}
	return all
}

// Observe is the Observer of a client.
func (l *Locks) Observe(e observe.Event) {
	noted := l.tally.Note(e)
	mode := noted.Mode.String()
	if noted.Counter != tally.None {
		if noted.First {
			l.begin(l.infos[noted.Counter].Family, noted.Group)
		}
		l.add(noted.Counter, noted.Group, noted.Value, float64(noted.N))
	}
	if e.Kind == observe.RunDone {
		l.lastRun.Set(float64(e.Scheduled.Unix()), l.of(noted.Group, false, "", "", "")...)
	}
	if noted.Histogram != tally.NoHistogram {
		l.histograms[noted.Histogram].Observe(noted.Seconds, l.of(noted.Group, true, mode, "", "")...)
	}
}

func (l *Locks) add(c tally.Counter, g tally.Group, value string, n float64) {
	info := &l.infos[c]
	l.counters[c].Add(n, l.of(g, info.Mode, g.Mode.String(), info.Label, value)...)
}

// begin makes every counter of a family 0 for a group, because Prometheus does not see
// the first step of a counter that begins with 1.
func (l *Locks) begin(family tally.Family, g tally.Group) {
	family.Each(func(c tally.Counter, value string) { l.add(c, g, value, 0) })
}

// Families returns what is known now.
func (l *Locks) Families() []*Family {
	all := append([]*Family{l.lastRun}, l.counters...)
	all = append(all, l.histograms...)
	for _, f := range l.gauges {
		f.Reset()
	}
	for group, standing := range l.tally.Now() {
		for i, g := range l.values {
			l.gauges[i].Set(g.Value(standing), l.of(group, true, group.Mode.String(), "", "")...)
		}
	}
	return append(all, l.gauges...)
}
