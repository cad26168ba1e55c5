package bench

import (
	"slices"
	"time"
)

// A Latency is how long something took, in microseconds: of all that were measured,
// half took P50 at most, and 95 and 99 in a hundred P95 and P99.
type Latency struct {
	Count int   `json:"count"`
	P50   int64 `json:"p50_us"`
	P95   int64 `json:"p95_us"`
	P99   int64 `json:"p99_us"`
}

// samples are measurements of one thing.
type samples []time.Duration

// add adds the time since start.
func (s *samples) add(start time.Time) { *s = append(*s, time.Since(start)) }

// latency sorts the samples.
func (s samples) latency() Latency {
	slices.Sort(s)
	return Latency{Count: len(s), P50: s.at(50), P95: s.at(95), P99: s.at(99)}
}

// at returns the least sample that so many in a hundred do not exceed; 0 of none.
func (s samples) at(percent int) int64 {
	if len(s) == 0 {
		return 0
	}
	return s[(len(s)*percent+99)/100-1].Microseconds()
}
