package otellock

import (
	"context"
	"errors"
	"strings"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/tally"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics are the instruments.
type metrics struct {
	tally      *tally.Tally
	infos      []tally.CounterInfo // of counters
	counters   []metric.Int64Counter
	histograms []metric.Float64Histogram
	gauges     []gauge
	reading    metric.Registration
}

// A gauge is computed when it is read.
type gauge struct {
	tally.GaugeInfo
	count   metric.Int64ObservableUpDownCounter // one of the two is nil
	seconds metric.Float64ObservableGauge
}

// newMetrics makes the instruments. They have the names of the Prometheus metrics, except
// that they have dots.
func newMetrics(meter metric.Meter, all *tally.Tally) (*metrics, error) {
	m := &metrics{tally: all, infos: tally.Counters()}
	var errs []error
	for _, c := range m.infos {
		counter, err := meter.Int64Counter("holdfast."+c.Name, metric.WithDescription(c.Help+"."), metric.WithUnit("{"+c.Unit+"}"))
		m.counters, errs = append(m.counters, counter), append(errs, err)
	}
	for _, h := range tally.Histograms() {
		histogram, err := meter.Float64Histogram("holdfast."+strings.ReplaceAll(h.Name, "_", "."),
			metric.WithDescription(h.Help+"."), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(h.Buckets...))
		m.histograms, errs = append(m.histograms, histogram), append(errs, err)
	}
	if err := errors.Join(append(errs, m.makeGauges(meter))...); err != nil {
		return nil, err
	}
	all.AtStart(m.begin)
	return m, nil
}

func (m *metrics) makeGauges(meter metric.Meter) (err error) {
	var read []metric.Observable
	for _, info := range tally.Gauges() {
		g, name, help := gauge{GaugeInfo: info}, "holdfast."+info.Name, metric.WithDescription(info.Help+".")
		if info.Unit == "seconds" {
			g.seconds, err = meter.Float64ObservableGauge(name, help, metric.WithUnit("s"))
			read = append(read, g.seconds)
		} else {
			g.count, err = meter.Int64ObservableUpDownCounter(name, help, metric.WithUnit("{"+info.Unit+"}"))
			read = append(read, g.count)
		}
		if err != nil {
			return err
		}
		m.gauges = append(m.gauges, g)
	}
	m.reading, err = meter.RegisterCallback(m.read, read...)
	return err
}

// read reports the values of the gauges.
func (m *metrics) read(_ context.Context, to metric.Observer) error {
	for group, standing := range m.tally.Now() {
		with := m.attributes(group, true, "", "")
		for _, g := range m.gauges {
			if g.seconds != nil {
				to.ObserveFloat64(g.seconds, g.Value(standing), with)
			} else {
				to.ObserveInt64(g.count, int64(g.Value(standing)), with)
			}
		}
	}
	return nil
}

// observe counts an event.
func (m *metrics) observe(e holdfast.Event) {
	noted := m.tally.Note(e)
	if noted.Counter != tally.None {
		if noted.First {
			m.begin(m.infos[noted.Counter].Family, noted.Group)
		}
		m.add(e.Context, noted.Counter, noted.Group, noted.Value, noted.N)
	}
	if noted.Histogram != tally.NoHistogram {
		m.histograms[noted.Histogram].Record(e.Context, noted.Seconds, m.attributes(noted.Group, true, "", ""))
	}
}

// begin makes every counter of a family 0 for a group, because a metrics system may not see
// the first step of a counter that begins with 1.
func (m *metrics) begin(family tally.Family, g tally.Group) {
	family.Each(func(c tally.Counter, value string) { m.add(context.Background(), c, g, value, 0) })
}

func (m *metrics) add(ctx context.Context, c tally.Counter, g tally.Group, value string, n int) {
	info := &m.infos[c]
	m.counters[c].Add(ctx, int64(n), m.attributes(g, info.Mode, info.Label, value))
}

// attributes returns the attributes of a measurement.
func (m *metrics) attributes(g tally.Group, mode bool, label, value string) metric.MeasurementOption {
	all := make([]attribute.KeyValue, 0, 3)
	if m.tally.Named() {
		all = append(all, keyName.String(g.Name))
	}
	if mode {
		all = append(all, keyMode.String(g.Mode))
	}
	if label != "" {
		all = append(all, attribute.String("holdfast."+label, value))
	}
	return metric.WithAttributeSet(attribute.NewSet(all...))
}

func (m *metrics) close() error { return m.reading.Unregister() }
