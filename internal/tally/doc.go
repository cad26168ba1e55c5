// Package tally turns events into measurements, which are the same in promlock and otellock:
// counters, histograms, and gauges of the present state. Use it to connect another metrics
// system; programs use promlock or otellock.
//
//	t := tally.New(tally.Fold)
//	observer := func(e holdfast.Event) {
//		m := t.Note(e)
//		// add m.N to the counter m.Counter, observe m.Seconds in the histogram m.Histogram
//	}
//
// [Counters], [Histograms] and [Gauges] describe the measurements, and [Tally.Now] returns the
// values of the gauges.
//
// # Memory
//
// A Tally has an entry for each wait and each possession, until its end, and up to [MaxNames]
// labels of names.
package tally
