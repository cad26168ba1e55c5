package tell_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/internal/tell"
	"github.com/holdfast-locks/holdfast/observe"
)

// A log has the lines that a Queue has logged.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns what was logged since the last take.
func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func newQueue(o observe.Observer) (*tell.Queue, *log) {
	q, l := &tell.Queue{}, &log{}
	q.Init(o, slog.New(slog.NewTextHandler(l, nil)))
	return q, l
}

// want checks that the lines since the last call are the texts, each once, and clears them.
func (l *log) want(t *testing.T, texts ...string) {
	t.Helper()
	logged := l.take()
	for _, text := range texts {
		if strings.Count(logged, text) != 1 {
			t.Errorf("logged, and want once %q in it:\n%s", text, logged)
		}
	}
	if n := strings.Count(logged, "\n"); n != len(texts) {
		t.Errorf("%d lines were logged, want %d:\n%s", n, len(texts), logged)
	}
}

// TestOrder checks that the Observer receives events in order. Their goroutine ends when the queue
// is empty: otherwise the test would not end.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int
		q, _ := newQueue(func(e observe.Event) { told = append(told, e.Count) })
		for i := range 1000 {
			if !q.Tell(&observe.Event{Count: i}, false) {
				t.Fatal("it was dropped")
			}
			if i%100 == 99 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		for i, n := range told {
			if i != n {
				t.Fatalf("the event %d was told as number %d", n, i)
			}
		}
		if len(told) != 1000 {
			t.Errorf("%d events were delivered", len(told))
		}
	})
}

// TestTimeAndContext checks that each event has a context and the time at which the queue received
// it.
func TestTimeAndContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		q, _ := newQueue(func(e observe.Event) {
			time.Sleep(time.Minute)
			if !e.Time.Equal(at) || e.Context == nil {
				t.Errorf("time %s, want %s; context %v", e.Time, at, e.Context)
			}
		})
		q.Tell(&observe.Event{}, false)
		q.Tell(&observe.Event{}, false)
		q.Wait(t.Context(), time.Hour)
	})
}

// TestPanicAndGoexit checks that a panic or Goexit of the Observer loses only its one event.
func TestPanicAndGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int
		q, l := newQueue(func(e observe.Event) {
			switch e.Count % 3 {
			case 1:
				panic(fmt.Sprint("no ", e.Count))
			case 2:
				runtime.Goexit()
			}
			told = append(told, e.Count)
		})
		for i := range 10 {
			q.Tell(&observe.Event{Count: i, Name: "a"}, false)
		}
		if left := q.Wait(t.Context(), time.Second); left > 0 || fmt.Sprint(told) != "[0 3 6 9]" {
			t.Errorf("received: %v, and %d are left", told, left)
		}
		l.want(t, `panic="no 1" panics=1`)
		time.Sleep(2 * time.Minute)
		q.Tell(&observe.Event{Count: 1}, false)
		synctest.Wait()
		l.want(t, "panics=3")
	})
}

// TestBlocked checks that a blocked Observer is reported, and that events that do not fit are
// dropped and counted. Events that must arrive are never dropped.
func TestBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, musts = 10_000, 6000
		free := make(chan struct{})
		told, ends := 0, 0
		q, l := newQueue(func(e observe.Event) {
			<-free
			told++
			ends += e.Count
		})
		taken := 0
		for range events {
			if q.Tell(&observe.Event{}, false) {
				taken++
			}
		}
		for range musts {
			if !q.Tell(&observe.Event{Count: 1}, true) {
				t.Fatal("an end was dropped")
			}
		}
		if taken != tell.Most {
			t.Errorf("%d events wait, want %d at most", taken, tell.Most)
		}
		time.Sleep(time.Hour)
		l.want(t, "the Observer blocks", fmt.Sprint("dropped=", events-taken))
		q.Tell(&observe.Event{}, false)
		close(free)
		synctest.Wait()
		if told != taken+musts || ends != musts {
			t.Errorf("%d events were delivered, and %d ends; want %d and %d", told, ends, taken+musts, musts)
		}
		time.Sleep(time.Hour)
		l.want(t, "dropped=1\n")
	})
}

// TestSlow checks that a slow Observer receives all events, and that nothing is logged.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		q, l := newQueue(func(observe.Event) {
			time.Sleep(4 * time.Second)
			told++
		})
		for range 100 {
			q.Tell(&observe.Event{}, false)
		}
		if left := q.Wait(t.Context(), 5*time.Second); left > 0 || told != 100 {
			t.Errorf("%d are left, %d were delivered", left, told)
		}
		l.want(t)
	})
}

// TestWaitEnds checks that Wait returns at its time limit or at the end of its context.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		q, l := newQueue(func(observe.Event) { <-free })
		if q.Wait(t.Context(), time.Second) != 0 {
			t.Error("something is left of nothing")
		}
		q.Tell(&observe.Event{}, false)
		q.Tell(&observe.Event{}, false)
		began := time.Now()
		if left := q.Wait(t.Context(), time.Second); left != 2 || time.Since(began) != time.Second {
			t.Errorf("%d are left after %s", left, time.Since(began))
		}
		l.want(t, "undelivered=2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if left := q.Wait(ctx, time.Second); left != 2 || time.Since(began) != time.Second+time.Millisecond {
			t.Errorf("%d are left after %s", left, time.Since(began))
		}
		l.want(t, "undelivered=2")
		close(free)
	})
}

// TestLogHandlerPanics checks that a panic of the log handler does not stop the queue.
func TestLogHandlerPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &tell.Queue{}
		bad := slog.New(slog.NewTextHandler(writer(func([]byte) { panic("full") }), nil))
		told := 0
		q.Init(func(observe.Event) { told++; panic("again") }, bad)
		q.Tell(&observe.Event{}, false)
		q.Tell(&observe.Event{}, false)
		if left := q.Wait(t.Context(), time.Second); left != 0 || told != 2 {
			t.Errorf("%d are left, %d were delivered", left, told)
		}
	})
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// TestTellAllocates checks that Tell allocates nothing, with an Observer or without.
func TestTellAllocates(t *testing.T) {
	var off tell.Queue
	if n := testing.AllocsPerRun(1000, func() { off.Tell(&observe.Event{}, false) }); n > 0 {
		t.Errorf("without an Observer: %.0f allocations", n)
	}
	var told atomic.Int64
	on, _ := newQueue(func(observe.Event) { told.Add(1) })
	n := testing.AllocsPerRun(1000, func() {
		on.Tell(&observe.Event{}, false)
		on.Wait(context.Background(), time.Minute)
	})
	t.Logf("%.1f allocations with a wait", n)
	if n := testing.AllocsPerRun(1000, func() { on.Tell(&observe.Event{}, false) }); n > 0 {
		t.Errorf("with an Observer: %.0f allocations", n)
	}
}

func BenchmarkTell(b *testing.B) {
	var told atomic.Int64
	q, _ := newQueue(func(observe.Event) { told.Add(1) })
	ctx := context.Background()
	b.Run("in a row", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			q.Tell(&observe.Event{Context: ctx, Name: "a"}, true)
		}
		q.Wait(ctx, time.Minute)
	})
	b.Run("one by one", func(b *testing.B) { // as after each request to a store
		b.ReportAllocs()
		spin := 0
		for b.Loop() {
			for range 3000 {
				spin++
			}
			q.Tell(&observe.Event{Context: ctx, Name: "a"}, true)
		}
		q.Wait(ctx, time.Minute)
	})
	b.Run("nothing", func(b *testing.B) {
		spin := 0
		for b.Loop() {
			for range 3000 {
				spin++
			}
		}
	})
}

// TestDropsAreSaidOnceAMinute checks that dropped events are logged once a minute and by Wait, and
// that every dropped event is counted.
func TestDropsAreSaidOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, l := newQueue(func(observe.Event) { time.Sleep(time.Millisecond) })
		dropped, said, lines := 0, 0, 0
		read := func() {
			for line := range strings.Lines(l.take()) {
				_, n, _ := strings.Cut(line, "dropped=")
				count, err := strconv.Atoi(strings.TrimSpace(n))
				if err != nil {
					t.Errorf("logged: %s", line)
				}
				said += count
				lines++
			}
		}
		for range 30 { // in about 150 s
			for range tell.Most + 10 {
				if !q.Tell(&observe.Event{Kind: observe.Renewed}, false) {
					dropped++
				}
			}
			time.Sleep(5 * time.Second)
		}
		if read(); lines < 2 || lines > 3 {
			t.Errorf("%d lines in 150 s, want one a minute", lines)
		}
		if q.Wait(t.Context(), time.Minute); dropped == 0 {
			t.Fatal("nothing was dropped")
		}
		if read(); said != dropped {
			t.Errorf("%d were dropped, and %d are said", dropped, said)
		}
	})
}
