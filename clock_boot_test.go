package holdfast

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A sleeper is a machine's boot-time clock: one that may be suspended, and whose
// readings may take their time.
type sleeper struct {
	start         time.Time
	asleep        atomic.Int64 // for how long it has been suspended
	before, after atomic.Int64 // pauses of the process around the next readings
	reads         atomic.Int64
}

func (s *sleeper) now() time.Duration {
	return time.Hour + time.Since(s.start) + time.Duration(s.asleep.Load())
}

func (s *sleeper) read() time.Duration {
	s.reads.Add(1)
	time.Sleep(time.Duration(s.before.Load()))
	now := s.now()
	time.Sleep(time.Duration(s.after.Load()))
	return now
}

// TestBootReader: a reading is used again for no longer than bootFresh, and what is
// told is never later than the clock, whatever happens around a reading; nor does it
// look like a suspension.
func TestBootReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleeper{start: time.Now()}
		s.after.Store(int64(time.Second)) // while the first reading is made
		var b bootReader
		b.init(s.read, bootFresh)
		s.after.Store(0)
		s.reads.Store(0)
		tells := func(want time.Duration) {
			t.Helper()
			if got := b.at(time.Now()); got != want {
				t.Errorf("it tells %s, want %s", got, want)
			}
		}
		for range 1000 {
			tells(s.now())
			time.Sleep(time.Microsecond)
		}
		if n := s.reads.Load(); n < 9 || n > 11 {
			t.Errorf("%d readings in a millisecond, want 10", n)
		}
		tells(s.now())
		s.asleep.Add(int64(time.Minute))
		tells(s.now() - time.Minute) // for a moment
		time.Sleep(bootFresh)
		tells(s.now())
		for _, pause := range []*atomic.Int64{&s.after, &s.before} {
			pause.Store(int64(time.Second))
			time.Sleep(bootFresh)
			mono := time.Now()
			if got, want := b.at(mono), s.now()-time.Since(mono); got != want {
				t.Errorf("with a pause around each reading it tells %s, want %s", got, want)
			}
			pause.Store(0)
			s.asleep.Add(int64(time.Minute))
			tells(s.now()) // at once: what was read slowly is not used again
		}
	})
}

// TestBootReaderForMany: whoever asks while the machine is suspended now and then
// is told what the clock shows, as of bootFresh ago at the most.
func TestBootReaderForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleeper{start: time.Now()}
		var b bootReader
		b.init(s.read, bootFresh)
		var slept atomic.Int64 // as it was bootFresh ago
		var all sync.WaitGroup
		all.Go(func() {
			for range 200 {
				s.asleep.Add(int64(time.Second))
				time.Sleep(bootFresh)
				slept.Store(s.asleep.Load())
				time.Sleep(bootFresh)
			}
		})
		for i := range 8 {
			all.Go(func() {
				var last time.Duration
				for range 1000 {
					least := time.Duration(slept.Load())
					mono := time.Now()
					got := b.at(mono)
					if floor := time.Hour + mono.Sub(s.start) + least; got < floor || got > s.now() || got < last {
						t.Errorf("it tells %s after %s, want %s to %s", got, last, floor, s.now())
					}
					last = got
					time.Sleep(time.Duration(7+i) * time.Microsecond)
				}
			})
		}
		all.Wait()
	})
}

// TestNoBootReader: where there is no such clock, or it fails, it tells 0, which
// switches the comparison off.
func TestNoBootReader(t *testing.T) {
	var b bootReader
	b.init(noBootClock, bootFresh)
	for range 3 {
		if got := b.at(time.Now()); got != 0 {
			t.Errorf("it tells %s, want 0", got)
		}
	}
}
