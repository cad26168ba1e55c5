package promlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/promlock"
)

// A pair of events, as a lone acquire and its release tell it.
func pair(m *promlock.Metrics) func() {
	acquired := observe.Event{Kind: observe.Acquired, Name: "orders/42", Key: "0123456789abcdef0123456789abcdef", Time: time.Now(), Waited: time.Millisecond}
	released := acquired
	released.Kind, released.Held = observe.Released, time.Second
	return func() {
		m.Observe(acquired)
		m.Observe(released)
	}
}

func BenchmarkPair(b *testing.B) {
	for name, opts := range map[string]*promlock.Options{"plain": nil, "names": {NameLabel: promlock.FoldNames}} {
		b.Run(name, func(b *testing.B) {
			tell := pair(promlock.New(opts))
			b.ReportAllocs()
			for b.Loop() {
				tell()
			}
		})
	}
}
