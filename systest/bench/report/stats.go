package report

import (
	"math"
	"slices"
)

// Median returns the middle sample, or the mean of the two in the middle. Without samples it is
// NaN.
func Median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Range returns the least and the greatest of the samples.
func Range(samples []float64) (least, greatest float64) {
	if len(samples) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(samples), slices.Max(samples)
}

// Percentile returns the sample that p percent of the samples do not exceed.
func Percentile(samples []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := int(math.Ceil(p/100*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// Jain returns Jain's index of fairness of turns: 1 if all n workers have the same number, and
// 1/n if one of them has all.
func Jain(turns []int64) float64 {
	var sum, squares float64
	for _, n := range turns {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(turns)) * squares)
}
