// Package exposition writes metrics as text for Prometheus, without its client library,
// which allocates four times as much before main as all of the command holdfast:
// every run of every command would pay for the one that serves. What it writes of locks
// is what package promlock exposes, to the byte; a test there compares the two.
package exposition

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ContentType is that of the text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// A Family is a metric, told apart by the values of its labels. All methods are safe for
// concurrent use. Whoever adds values from outside bounds their number.
type Family struct {
	name, help, kind string
	labels           []string  // sorted
	order            []int     // where the value of each stands in what a caller gives
	bounds           []float64 // of the buckets of a histogram

	mu     sync.Mutex
	series map[string]*series
}

// A series is what is known for one set of values.
type series struct {
	values  []string // of the labels, in their order
	value   float64  // of a histogram: the sum
	count   uint64
	buckets []uint64 // not cumulative
}

// NewCounter returns a counter.
func NewCounter(name, help string, labels ...string) *Family {
	return newFamily(name, help, "counter", nil, labels)
}

// NewGauge returns a gauge.
func NewGauge(name, help string, labels ...string) *Family {
	return newFamily(name, help, "gauge", nil, labels)
}

// NewHistogram returns a histogram with these upper bounds.
func NewHistogram(name, help string, bounds []float64, labels ...string) *Family {
	return newFamily(name, help, "histogram", bounds, labels)
}

func newFamily(name, help, kind string, bounds []float64, labels []string) *Family {
	f := &Family{name: name, help: help, kind: kind, bounds: bounds, series: map[string]*series{}}
	for i := range labels {
		f.order = append(f.order, i)
	}
	slices.SortFunc(f.order, func(i, j int) int { return cmp.Compare(labels[i], labels[j]) })
	for _, i := range f.order {
		f.labels = append(f.labels, labels[i])
	}
	return f
}

// Add adds to a counter or a gauge. The values are those of the labels, in the order in
// which these were given.
func (f *Family) Add(n float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(values).value += n
}

// Set sets a gauge.
func (f *Family) Set(v float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(values).value = v
}

// Observe adds to a histogram.
func (f *Family) Observe(v float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of(values)
	s.value += v
	s.count++
	if i, _ := slices.BinarySearch(f.bounds, v); i < len(f.bounds) {
		s.buckets[i]++
	}
}

// Reset forgets all series.
func (f *Family) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.series)
}

// of returns the series of values, and makes it if it is not there. The mutex is held.
func (f *Family) of(values []string) *series {
	var room [128]byte
	key := room[:0]
	for _, v := range values {
		key = append(append(key, v...), 0)
	}
	s := f.series[string(key)]
	if s == nil {
		s = &series{buckets: make([]uint64, len(f.bounds))}
		for _, i := range f.order {
			s.values = append(s.values, values[i])
		}
		f.series[string(key)] = s
	}
	return s
}

// Append appends the text of families, by their names. One without series is left out.
func Append(text []byte, families ...*Family) []byte {
	families = slices.Clone(families)
	slices.SortFunc(families, func(a, b *Family) int { return cmp.Compare(a.name, b.name) })
	for _, f := range families {
		text = f.append(text)
	}
	return text
}

func (f *Family) append(text []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.series) == 0 {
		return text
	}
	all := make([]*series, 0, len(f.series))
	for _, s := range f.series {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *series) int { return slices.Compare(a.values, b.values) })
	text = append(text, "# HELP "+f.name+" "+escapedHelp.Replace(f.help)+"\n# TYPE "+f.name+" "+f.kind+"\n"...)
	for _, s := range all {
		if f.kind != "histogram" {
			text = f.sample(text, s, "", "", s.value)
			continue
		}
		below := uint64(0)
		for i, bound := range f.bounds {
			below += s.buckets[i]
			text = f.sample(text, s, "_bucket", number(bound), float64(below))
		}
		text = f.sample(text, s, "_bucket", "+Inf", float64(s.count))
		text = f.sample(text, s, "_sum", "", s.value)
		text = f.sample(text, s, "_count", "", float64(s.count))
	}
	return text
}

// sample appends one line. le is the bound of a bucket, or empty.
func (f *Family) sample(text []byte, s *series, suffix, le string, v float64) []byte {
	text = append(text, f.name+suffix...)
	between := "{"
	for i, label := range f.labels {
		text = append(text, between+label+`="`+escapedValue.Replace(s.values[i])+`"`...)
		between = ","
	}
	if le != "" {
		text = append(text, between+`le="`+le+`"`...)
		between = ","
	}
	if between == "," {
		text = append(text, '}')
	}
	return append(text, " "+number(v)+"\n"...)
}

var (
	escapedHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapedValue = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
