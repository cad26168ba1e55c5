package oteltest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/tally"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/otellock"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	noop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

var update = flag.Bool("update", false, "write testdata")

// TestMetrics compares the metrics after one event of each kind with testdata.
func TestMetrics(t *testing.T) {
	for file, label := range map[string]func(string) string{"testdata/plain.txt": nil, "testdata/names.txt": otellock.FoldNames} {
		synctest.Test(t, func(t *testing.T) {
			reader := sdkmetric.NewManualReader()
			telemetry, err := otellock.New(&otellock.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), NameLabel: label})
			if err != nil {
				t.Fatal(err)
			}
			for i, kind := range observe.Kinds() {
				telemetry.Observe(holdfast.Event{
					Kind: kind, Context: t.Context(), Time: time.Now(), Name: fmt.Sprint("orders/", i), Key: "1", LeaseID: "1",
					Waited: time.Second, Held: time.Minute, Count: 5,
				})
			}
			telemetry.Observe(holdfast.Event{Kind: holdfast.Acquired, Context: t.Context(), Time: time.Now(), Name: "orders/42", Key: "2", LeaseID: "2"})
			time.Sleep(time.Hour)
			got := collect(t, reader)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("measured:\n%s\nwant %s (-update writes it anew)", got, file)
			}
			if err := telemetry.Close(); err != nil {
				t.Error(err)
			}
			if got := collect(t, reader); strings.Contains(got, "holdfast.held") {
				t.Errorf("after Close the gauges are read: %s", got)
			}
		})
	}
}

// collect returns what a reader collects, one line for each value.
func collect(t *testing.T, reader sdkmetric.Reader) string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			add := func(set attribute.Set, value any) {
				lines = append(lines, fmt.Sprintf("%s %s {%s} %v\n", m.Name, m.Unit, set.Encoded(attribute.DefaultEncoder()), value))
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, fmt.Sprint("count ", p.Count, " sum ", p.Sum, " bounds ", p.Bounds))
				}
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestSameSet checks that otellock has each metric of package tally, as promlock does.
func TestSameSet(t *testing.T) {
	text, err := os.ReadFile("testdata/plain.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range tally.Counters() {
		names = append(names, c.Name)
	}
	for _, g := range tally.Gauges() {
		names = append(names, g.Name)
	}
	for _, h := range tally.Histograms() {
		names = append(names, strings.ReplaceAll(h.Name, "_", "."))
	}
	for _, name := range names {
		if !strings.Contains(string(text), "holdfast."+name+" ") {
			t.Errorf("there is no holdfast.%s", name)
		}
	}
}

// A refusing provider refuses an instrument, which New must report.
type refusing struct{ noop.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noop.Meter }

func (refusingMeter) Float64ObservableGauge(string, ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	return nil, errRefused
}

var errRefused = errors.New("no more instruments")

func TestRefusedInstrument(t *testing.T) {
	if _, err := otellock.New(&otellock.Options{MeterProvider: refusing{}}); !errors.Is(err, errRefused) {
		t.Errorf("%v, want the provider's error", err)
	}
}
