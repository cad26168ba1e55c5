package schedule_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/schedule"
)

// An appointment is a thing of which the test knows by itself when it is due.
type appointment struct {
	entry schedule.Entry
	due   time.Time // zero: it is not in the table
	seen  int
}

// A diary is an owner of a timetable.
type diary struct {
	t     *testing.T
	mu    sync.Mutex // guards the rest
	table schedule.Timetable[*appointment]
	all   []*appointment
	ticks int
	next  func(*appointment) time.Time // after a visit
}

func newDiary(t *testing.T, n int) *diary {
	d := &diary{t: t, next: func(*appointment) time.Time { return time.Time{} }}
	d.table.Init(func(a *appointment) *schedule.Entry { return &a.entry }, d.tick)
	for range n {
		d.all = append(d.all, &appointment{})
	}
	return d
}

func (d *diary) put(a *appointment, in time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.due = time.Now().Add(in)
	d.table.Put(a, a.due)
}

func (d *diary) remove(a *appointment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.due = time.Time{}
	d.table.Remove(a)
}

func (d *diary) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ticks++
	now := time.Now()
	d.table.Visit(func(a *appointment) (time.Time, bool) {
		if first := d.first(); !a.due.Equal(first) || !a.entry.At().Equal(first) {
			d.t.Errorf("visited what is due at %s, want the first, due at %s", a.due, first)
		}
		if a.due.After(now) {
			return time.Time{}, true
		}
		if late := now.Sub(a.due); late > 0 {
			d.t.Errorf("visited %s late", late)
		}
		a.seen++
		a.due = d.next(a)
		return a.due, false
	})
}

// first returns when the first is due, looked up in all of them.
func (d *diary) first() (first time.Time) {
	for _, a := range d.all {
		if !a.due.IsZero() && (first.IsZero() || a.due.Before(first)) {
			first = a.due
		}
	}
	return first
}

// Whatever is put, moved and removed, each item is visited at its time exactly,
// and in the order of times.
func TestTimetable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary(t, 100)
		d.next = func(*appointment) time.Time {
			if rand.IntN(2) == 0 {
				return time.Time{}
			}
			return time.Now().Add(1 + rand.N(time.Second))
		}
		for range 5000 {
			a := d.all[rand.IntN(len(d.all))]
			if rand.IntN(4) == 0 {
				d.remove(a)
			} else {
				d.put(a, 1+rand.N(time.Second))
			}
			time.Sleep(rand.N(20 * time.Millisecond))
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		in, seen := 0, 0
		for _, a := range d.all {
			seen += a.seen
			if !a.due.IsZero() {
				in++
			}
		}
		if d.table.Len() != in || len(d.table.All()) != in || seen < 1000 {
			t.Errorf("%d items, %d listed, %d visits; want %d items and many visits", d.table.Len(), len(d.table.All()), seen, in)
		}
	})
}

// The timer fires for what is due, or when LongestPause is over, and not at all
// while there is nothing.
func TestTimetableTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary(t, 1)
		ticks := func(in time.Duration, want int) {
			t.Helper()
			time.Sleep(in)
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.ticks != want {
				t.Errorf("%d ticks, want %d", d.ticks, want)
			}
			d.ticks = 0
		}
		ticks(24*time.Hour, 0)
		d.put(d.all[0], 10*time.Second)
		ticks(time.Minute, 1)
		d.table.LongestPause = time.Second
		d.put(d.all[0], 9500*time.Millisecond)
		ticks(time.Minute, 10)
		d.put(d.all[0], 10*time.Second)
		d.remove(d.all[0])
		ticks(time.Minute, 1) // in vain
	})
}

// A router that sends each name to the route that it begins with.
type router struct{}

func (router) Route(name string) uint32 { return uint32(name[0]) }

func TestBatches(t *testing.T) {
	names := func(route string, n int) (names []string) {
		for i := range n {
			names = append(names, route+strconv.Itoa(i))
		}
		return names
	}
	self := func(s string) string { return s }
	shuffled := slices.Concat(names("b", 3), names("a", driver.MaxBatch+1))
	slices.SortFunc(shuffled, func(x, y string) int { return strings.Compare(x[1:], y[1:]) })
	for what, c := range map[string]struct {
		router driver.Router
		names  []string
		want   []int // lengths
	}{
		"nothing":                    {nil, nil, nil},
		"one request":                {nil, names("a", driver.MaxBatch), []int{driver.MaxBatch}},
		"one too many":               {nil, names("a", driver.MaxBatch+1), []int{driver.MaxBatch, 1}},
		"each route has its own":     {router{}, shuffled, []int{3, driver.MaxBatch, 1}},
		"nothing for nobody's route": {router{}, nil, nil},
	} {
		var got []int
		seen := map[string]bool{}
		batches := schedule.NewBatches(c.router, driver.MaxBatch, self)
		full := 0
		for _, name := range c.names {
			batches.Add(name)
		}
		for _, batch := range batches.All() {
			if len(batch) == driver.MaxBatch {
				full++
			}
			got = append(got, len(batch))
			for _, name := range batch {
				seen[name] = true
				if c.router != nil && name[0] != batch[0][0] {
					t.Errorf("%s: %s and %s are in one request", what, name, batch[0])
				}
			}
		}
		if batches.Full() != full || batches.Room() != (full < len(got)) {
			t.Errorf("%s: %d are full, and there is room: %v; want %d of %d", what, batches.Full(), batches.Room(), full, len(got))
		}
		if len(seen) != len(c.names) {
			t.Errorf("%s: %d names came through, want %d", what, len(seen), len(c.names))
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: requests of %d, want %d", what, got, c.want)
		}
	}
}
