package serve

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// A page is metrics in the text format of Prometheus, version 0.0.4, which its documentation
// describes under "Exposition formats". The client library of Prometheus is not used: each
// command would initialise it before main. ADR 40.
type page struct{ bytes.Buffer }

const pageType = "text/plain; version=0.0.4; charset=utf-8"

func (p *page) head(name, kind, help string) {
	_, _ = fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes one value. labels come from the function labels.
func (p *page) sample(name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	p.WriteString(name + labels + " " + number(value) + "\n")
}

// gauge and counter write a metric that has one value.
func (p *page) gauge(name, help string, value float64)   { p.single(name, "gauge", help, value) }
func (p *page) counter(name, help string, value float64) { p.single(name, "counter", help, value) }

func (p *page) single(name, kind, help string, value float64) {
	p.head(name, kind, help)
	p.sample(name, "", value)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labels returns the text of labels, which are given as pairs of name and value.
func labels(namesAndValues ...string) string {
	var all []string
	for pair := range slices.Chunk(namesAndValues, 2) {
		all = append(all, pair[0]+`="`+escaper.Replace(pair[1])+`"`)
	}
	return strings.Join(all, ",")
}

// A family is a counter or a histogram. It is safe for concurrent use.
type family struct {
	name, help string
	bounds     []float64 // upper bounds of a histogram's buckets; nil for a counter

	mu     sync.Mutex
	series map[string]*series // by labels
}

// A series is what a family has counted for one set of labels.
type series struct {
	sum     float64
	buckets []uint64 // how many values are in each; the last one has no bound
}

func (f *family) seriesLocked(labels string) *series {
	s := f.series[labels]
	if s == nil {
		if s = (&series{}); f.bounds != nil {
			s.buckets = make([]uint64, len(f.bounds)+1)
		}
		if f.series == nil {
			f.series = map[string]*series{}
		}
		f.series[labels] = s
	}
	return s
}

// add adds n to a counter. The series is exposed from then on, even if n is 0.
func (f *family) add(labels string, n float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seriesLocked(labels).sum += n
}

// observe adds a value to a histogram.
func (f *family) observe(labels string, value float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.seriesLocked(labels)
	s.sum += value
	s.buckets[sort.SearchFloat64s(f.bounds, value)]++
}

// write writes all series in the order of their labels.
func (f *family) write(p *page) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.series) == 0 {
		return
	}
	kind := "counter"
	if f.bounds != nil {
		kind = "histogram"
	}
	p.head(f.name, kind, f.help)
	for _, labels := range slices.Sorted(maps.Keys(f.series)) {
		if s := f.series[labels]; f.bounds != nil {
			f.writeBuckets(p, labels, s)
		} else {
			p.sample(f.name, labels, s.sum)
		}
	}
}

// writeBuckets writes a histogram. Each bucket that it writes includes those with smaller bounds.
func (f *family) writeBuckets(p *page, labels string, s *series) {
	count, before := uint64(0), labels
	if before != "" {
		before += ","
	}
	for i, n := range s.buckets {
		bound := math.Inf(1)
		if i < len(f.bounds) {
			bound = f.bounds[i]
		}
		count += n
		p.sample(f.name+"_bucket", before+`le="`+number(bound)+`"`, float64(count))
	}
	p.sample(f.name+"_sum", labels, s.sum)
	p.sample(f.name+"_count", labels, float64(count))
}
