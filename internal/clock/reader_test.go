package clock

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A sleeper is the boot-time clock of a machine that may be suspended. A reading may take time.
type sleeper struct {
	start         time.Time
	asleep        atomic.Int64 // how long it has been suspended
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

// TestBootReader checks that a reading is used again for at most Fresh, and that the reader's time
// is never later than the clock, whatever happens around a reading. A slow reading does not look
// like a suspension.
func TestBootReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleeper{start: time.Now()}
		s.after.Store(int64(time.Second)) // during the first reading
		var b Reader
		b.Init(s.read, None, Fresh)
		s.after.Store(0)
		s.reads.Store(0)
		tells := func(want time.Duration) {
			t.Helper()
			if got := b.At(time.Now()); got != want {
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
		tells(s.now() - time.Minute) // for a short time
		time.Sleep(Fresh)
		tells(s.now())
		for _, pause := range []*atomic.Int64{&s.after, &s.before} {
			pause.Store(int64(time.Second))
			time.Sleep(Fresh)
			mono := time.Now()
			if got, want := b.At(mono), s.now()-time.Since(mono); got != want {
				t.Errorf("with a pause around each reading it tells %s, want %s", got, want)
			}
			pause.Store(0)
			s.asleep.Add(int64(time.Minute))
			tells(s.now()) // at once: a slow reading is not used again
		}
	})
}

// TestBootReaderForMany checks that concurrent callers read a time that is at most Fresh old while
// the machine is suspended now and then.
func TestBootReaderForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleeper{start: time.Now()}
		var b Reader
		b.Init(s.read, None, Fresh)
		var slept atomic.Int64 // the value Fresh ago
		var all sync.WaitGroup
		all.Go(func() {
			for range 200 {
				s.asleep.Add(int64(time.Second))
				time.Sleep(Fresh)
				slept.Store(s.asleep.Load())
				time.Sleep(Fresh)
			}
		})
		for i := range 8 {
			all.Go(func() {
				var last time.Duration
				for range 1000 {
					least := time.Duration(slept.Load())
					mono := time.Now()
					got := b.At(mono)
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

// TestNoBootReader checks that the reader returns 0, which switches the comparison off, if there is
// no such clock or it fails.
func TestNoBootReader(t *testing.T) {
	var b Reader
	b.Init(None, None, Fresh)
	for range 3 {
		if got := b.At(time.Now()); got != 0 {
			t.Errorf("it tells %s, want 0", got)
		}
	}
}

// TestRawReader checks that a reading of the raw clock is used again for slewFresh, in which
// slewing the monotonic clock has no significant effect. The result follows the raw clock, in
// whichever direction the monotonic clock is slewed.
func TestRawReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleeper{start: time.Now()}
		var raw, reads time.Duration // the offset of the raw clock from the monotonic clock
		var b Reader
		b.Init(s.read, func() time.Duration { reads++; return time.Since(s.start) + time.Minute + raw }, Fresh)
		reads = 0
		tells := func(want time.Duration) {
			t.Helper()
			if got := b.At(time.Now()); (got - want).Abs() > slewFresh/10 {
				t.Errorf("it tells %s, want %s", got, want)
			}
		}
		for _, slew := range []time.Duration{100, -100, 83, 0} {
			for range 100_000 { // a microsecond each
				raw += slew
				time.Sleep(time.Microsecond)
				tells(s.now() + raw)
			}
		}
		if reads < 70 || reads > 81 {
			t.Errorf("%d readings in 0.4 s, want 80", reads)
		}
		s.asleep.Add(int64(time.Minute))
		time.Sleep(Fresh)
		tells(s.now() + raw)
	})
}
