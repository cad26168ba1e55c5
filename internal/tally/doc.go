// Package tally makes measurements of events: what promlock and otellock count alike,
// under which names, and what is going on at this moment. It is for those who
// connect another system of metrics; programs use promlock or otellock.
//
//	t := tally.New(tally.Fold)
//	observer := func(e holdfast.Event) {
//		m := t.Note(e)
//		// add m.N to the counter m.Counter, observe m.Seconds in the histogram m.Histogram
//	}
//
// [Counters], [Histograms] and [Gauges] have what there is to measure, and [Tally.Now]
// the values of the gauges.
//
// # Memory
//
// A Tally remembers what goes on: one entry for each wait and each possession, until
// its end. It remembers labels of names as well: [MaxNames] at most.
package tally
