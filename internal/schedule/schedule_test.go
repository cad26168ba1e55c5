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

// An appointment is an item with the time at which the test expects it.
type appointment struct {
	entry schedule.Entry[*appointment]
	due   time.Time // zero: not in the table
	seen  int
}

// A diary is the owner of a timetable.
type diary struct {
	t     *testing.T
	mu    sync.Mutex // guards the rest
	table schedule.Timetable[*appointment]
	all   []*appointment
	ticks int
	next  func(*appointment) time.Time // returns when the item is due after a visit
}

func newDiary(t *testing.T, n int) *diary {
	d := &diary{t: t, next: func(*appointment) time.Time { return time.Time{} }}
	d.table.Init(d.tick)
	for range n {
		a := &appointment{}
		a.entry.Item = a
		d.all = append(d.all, a)
	}
	return d
}

func (d *diary) put(a *appointment, in time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.due = time.Now().Add(in)
	d.table.Put(&a.entry, a.due)
}

func (d *diary) remove(a *appointment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.due = time.Time{}
	d.table.Remove(&a.entry)
}

func (d *diary) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ticks++
	now := time.Now()
	d.table.Visit(func(a *appointment) (time.Time, bool) {
		if first := d.first(); !a.due.Equal(first) || !d.table.At(&a.entry).Equal(first) {
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

// first returns the time of the first appointment. It searches all appointments.
func (d *diary) first() (first time.Time) {
	for _, a := range d.all {
		if !a.due.IsZero() && (first.IsZero() || a.due.Before(first)) {
			first = a.due
		}
	}
	return first
}

// TestTimetable checks that each item is visited exactly at its time and in order, whatever is put,
// moved and removed.
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

// TestTimetableTicks checks that the timer fires when an item is due or LongestPause has passed,
// and not at all without items.
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
		ticks(time.Minute, 1) // without a due item
	})
}

// TestTimetableRows checks that items with the same pause share a row, and that other items need
// few rows. Removed items leave no row.
func TestTimetableRows(t *testing.T) {
	const n, step = 10_000, time.Millisecond
	began := time.Now()
	for what, c := range map[string]struct {
		at   func(i int) time.Duration // when item i is due
		most int
	}{
		"one pause":              {func(i int) time.Duration { return time.Hour + time.Duration(i)*step }, 1},
		"each before the last":   {func(i int) time.Duration { return time.Hour - time.Duration(i)*step }, 1},
		"all at one time":        {func(int) time.Duration { return time.Hour }, 1},
		"three pauses":           {func(i int) time.Duration { return time.Duration(i%3+1)*time.Hour + time.Duration(i)*step }, 3},
		"one pause, and an hour": {func(i int) time.Duration { return time.Duration(i/5000%2)*time.Hour + time.Duration(i)*step }, 2},
		"at random":              {func(int) time.Duration { return rand.N(time.Hour) }, 300},
	} {
		d := newDiary(t, n)
		most := 0
		for i, a := range d.all {
			d.table.Put(&a.entry, began.Add(time.Hour+c.at(i)))
			most = max(most, d.table.Rows())
		}
		if most > c.most {
			t.Errorf("%s: %d rows, want %d at most", what, most, c.most)
		}
		for i := range d.all { // a renewed item is put behind the others after a moment
			d.table.Put(&d.all[i].entry, began.Add(time.Minute))
			d.table.Put(&d.all[i].entry, began.Add(5*time.Hour+time.Duration(i)*step))
			most = max(most, d.table.Rows())
		}
		if most > c.most+2 || d.table.Len() != n {
			t.Errorf("%s: %d rows, want %d at most; %d items, want %d", what, most, c.most+2, d.table.Len(), n)
		}
		rand.Shuffle(n, func(i, j int) { d.all[i], d.all[j] = d.all[j], d.all[i] })
		for _, a := range d.all {
			d.remove(a)
		}
		if d.table.Rows() != 0 || d.table.Len() != 0 {
			t.Errorf("%s: %d rows and %d items, want none", what, d.table.Rows(), d.table.Len())
		}
	}
}

// BenchmarkTimetable measures the timetable's part of a renewal: a due item moves twice, to the
// time of a retry and to its next renewal.
func BenchmarkTimetable(b *testing.B) {
	const n, ttl = 100_000, 30 * time.Second
	for what, jitter := range map[string]time.Duration{"one TTL": 1, "each another": ttl / 3} {
		b.Run(what, func(b *testing.B) {
			var table schedule.Timetable[*appointment]
			table.Init(func() {})
			now := time.Now()
			for i := range n {
				a := &appointment{}
				a.entry.Item = a
				table.Put(&a.entry, now.Add(time.Duration(i)*ttl/3/n+rand.N(jitter)))
			}
			for i := 0; i < b.N; i += driver.MaxBatch {
				var batch []*appointment
				table.Visit(func(a *appointment) (time.Time, bool) {
					if len(batch) == driver.MaxBatch {
						return time.Time{}, true
					}
					batch, a.due = append(batch, a), table.At(&a.entry)
					return a.due.Add(ttl / 6), false
				})
				for _, a := range batch {
					table.Put(&a.entry, a.due.Add(ttl/3+rand.N(jitter)))
				}
			}
		})
	}
}

// A router sends each name to the route that is the name's first letter.
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
