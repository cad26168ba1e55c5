package report

import (
	"math"
	"testing"
)

func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"median of an odd number", Median([]float64{9, 1, 5}), 5},
		{"median of an even number", Median([]float64{4, 1, 3, 2}), 2.5},
		{"median of one", Median([]float64{7}), 7},
		{"median of none", Median(nil), math.NaN()},
		{"99 % of a hundred", Percentile(upTo(100), 99), 99},
		{"99 % of ten", Percentile(upTo(10), 99), 10},
		{"0 %", Percentile(upTo(10), 0), 1},
		{"100 %", Percentile(upTo(10), 100), 10},
		{"percentile of none", Percentile(nil, 50), math.NaN()},
		{"all have the same", Jain([]int64{3, 3, 3, 3}), 1},
		{"one of four has all", Jain([]int64{0, 8, 0, 0}), 0.25},
		{"two to one", Jain([]int64{2, 1}), 0.9},
		{"nobody has any", Jain([]int64{0, 0}), math.NaN()},
	} {
		if math.Abs(c.got-c.want) > 1e-12 || math.IsNaN(c.got) != math.IsNaN(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestRange(t *testing.T) {
	if least, greatest := Range([]float64{3, 1, 2}); least != 1 || greatest != 3 {
		t.Errorf("got %v to %v, want 1 to 3", least, greatest)
	}
}

func TestStatisticsChangeNothing(t *testing.T) {
	samples := []float64{3, 1, 2}
	Median(samples)
	Percentile(samples, 50)
	if samples[0] != 3 || samples[1] != 1 || samples[2] != 2 {
		t.Errorf("the samples are %v now", samples)
	}
}

// upTo returns the numbers from 1 to n.
func upTo(n int) (all []float64) {
	for i := range n {
		all = append(all, float64(i+1))
	}
	return all
}
