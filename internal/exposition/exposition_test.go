package exposition_test

import (
	"sync"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/exposition"
)

// The text is compared with that of Prometheus' own library by TestSameText of promlock.
const want = `# HELP b_total Two \\ lines\n of help.
# TYPE b_total counter
b_total{route="a",status="200"} 2
b_total{route="a",status="500"} 1
b_total{route="c \"\\\n",status="200"} 0.5
# HELP d_seconds How long.
# TYPE d_seconds histogram
d_seconds_bucket{le="0.1"} 2
d_seconds_bucket{le="1"} 2
d_seconds_bucket{le="+Inf"} 3
d_seconds_sum 7.1
d_seconds_count 3
# HELP g Now.
# TYPE g gauge
g 1e+06
`

func TestAppend(t *testing.T) {
	total := exposition.NewCounter("b_total", "Two \\ lines\n of help.", "status", "route") // not in their order
	total.Add(1, "500", "a")
	total.Add(0.5, "200", "c \"\\\n")
	total.Add(1, "200", "a")
	total.Add(1, "200", "a")
	duration := exposition.NewHistogram("d_seconds", "How long.", []float64{.1, 1})
	for _, v := range []float64{0, .1, 7} {
		duration.Observe(v)
	}
	gauge, none := exposition.NewGauge("g", "Now."), exposition.NewGauge("none", "Without a series.")
	gauge.Add(1)
	gauge.Set(1e6)
	none.Set(1)
	none.Reset()
	if got := string(exposition.Append(nil, none, gauge, duration, total)); got != want {
		t.Errorf("it writes\n%s\nwant\n%s", got, want)
	}
}

// TestConcurrent: many count while it is read. Nothing is lost.
func TestConcurrent(t *testing.T) {
	total := exposition.NewCounter("a_total", "All.", "who")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				total.Add(1, "x")
			}
		})
	}
	exposition.Append(nil, total)
	all.Wait()
	if got := string(exposition.Append(nil, total)); got != "# HELP a_total All.\n# TYPE a_total counter\na_total{who=\"x\"} 4000\n" {
		t.Errorf("%s", got)
	}
}
