package demo

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// pastSpan is how long the made-up past of a demo is.
const pastSpan = 15 * time.Minute

// WithPast returns engine with a made-up past, as if the fleet had run for a quarter of an hour,
// so that the page has charts from the beginning. The past comes first in the feed and in the
// histories. The engine must keep history. The same seed gives the same past.
func WithPast(engine driver.Engine, seed uint64) driver.Engine {
	return &pastEngine{driver.Forward{Engine: engine}, pastOf(seed), time.Now()}
}

type pastEngine struct {
	driver.Forward
	past []lockinfo.HistoryEvent // the oldest first; Ago counts from now
	now  time.Time
}

// OnEvent implements driver.Historian.
func (p *pastEngine) OnEvent(listener func(lockinfo.HistoryEvent)) (stop func()) {
	for _, e := range p.past {
		listener(p.aged(e))
	}
	return p.Forward.OnEvent(listener)
}

// History implements driver.Historian.
func (p *pastEngine) History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error) {
	events, err := p.Forward.History(ctx, name)
	if err != nil {
		return nil, err
	}
	var all []lockinfo.HistoryEvent
	for _, e := range p.past {
		if e.Name == name {
			all = append(all, p.aged(e))
		}
	}
	all = append(all, events...)
	return all[max(0, len(all)-driver.MaxHistory):], nil
}

func (p *pastEngine) aged(e lockinfo.HistoryEvent) lockinfo.HistoryEvent {
	e.Ago += time.Since(p.now)
	return e
}

// A course is the past of one name, which its users take in turns.
type course struct {
	name       string
	users      string     // HOST/USER/PROGRAM of each user, separated by spaces
	work, rest [2]float64 // bounds of random times, in seconds
}

// courses returns the courses of all names. They resemble the work of the cast.
func courses() (all []course) {
	for i := range 40 {
		all = append(all, course{fmt.Sprint("orders/", 41_200+i), fmt.Sprintf("web-%d/www/shop", 1+i%4), [2]float64{0.4, 2.5}, [2]float64{40, 140}})
	}
	return append(all,
		course{leadership, "batch-1/app/scheduler batch-2/app/scheduler batch-3/app/scheduler", [2]float64{90, 90}, [2]float64{0, 0}},
		course{"deploy/shop", "ci-1/ci/deploy ci-2/ci/deploy ci-3/ci/deploy", [2]float64{8, 16}, [2]float64{3, 9}},
		course{"deploy/search", "ci-1/ci/deploy", [2]float64{8, 16}, [2]float64{3, 9}},
		course{report, "batch-1/finance/report batch-2/finance/report", [2]float64{70, 110}, [2]float64{5, 8}},
		course{"nightly/backup", "batch-1/root/backup", [2]float64{9, 16}, [2]float64{8, 12}},
		course{"nightly/vacuum", "batch-2/postgres/vacuum", [2]float64{6, 12}, [2]float64{5, 9}},
		course{"catalog", "batch-2/search/indexer web-1/www/shop", [2]float64{3, 6}, [2]float64{2, 6}},
		course{hung, "worker-3/app/warm-up", [2]float64{120, 180}, [2]float64{4, 8}},
		course{transcode, "worker-4/app/transcoder", [2]float64{3, 6}, [2]float64{2, 4}},
		course{"stock/munich", "stock-3/app/inventory stock-2/app/mover", [2]float64{20, 30}, [2]float64{3, 5}},
	)
}

// holders returns the users of a course.
func (c course) holders() (all []lockinfo.Holder) {
	for user := range strings.FieldsSeq(c.users) {
		part := strings.Split(user, "/")
		h := lockinfo.Holder{Host: part[0], User: part[1], Program: part[2], PID: 400 + len(part[0])*len(part[2])*37}
		if c.name == leadership {
			h.Labels = map[string]string{holdfast.LeadLabel: "1"}
		}
		all = append(all, h)
	}
	return all
}

// crashes are the times before now at which the holder of a name died. They are few, so that they
// stand out.
var crashes = map[string]time.Duration{transcode: 11 * time.Minute, hung: 4 * time.Minute}

// pastOf returns the events of all courses, the oldest first.
func pastOf(seed uint64) (events []lockinfo.HistoryEvent) {
	for i, c := range courses() {
		events = append(events, c.events(rand.New(rand.NewPCG(seed, uint64(1000+i))))...) //nolint:gosec // it is a demo that is the same each time
	}
	slices.SortStableFunc(events, func(a, b lockinfo.HistoryEvent) int { return cmp.Compare(b.Ago, a.Ago) })
	for i := range events {
		events[i].ID = fmt.Sprintf("past-%x-%x", seed, i)
	}
	return events
}

// events plays a course from pastSpan ago until now. Leases that last until now end now, and waits
// that would last until now are left out. A token is the time of the grant in microseconds, as in
// most stores.
func (c course) events(r *rand.Rand) (events []lockinfo.HistoryEvent) {
	draw := func(from [2]float64) time.Duration {
		return time.Duration((from[0] + r.Float64()*(from[1]-from[0])) * float64(time.Second))
	}
	users, began := c.holders(), time.Now().Add(-pastSpan)
	ready := make([]time.Duration, len(users)) // when each user wants the lock next, since the beginning
	for i := range ready {
		ready[i] = draw(c.rest)
	}
	note := func(at time.Duration, e lockinfo.HistoryEvent) {
		e.Name, e.Ago = c.name, pastSpan-at
		events = append(events, e)
	}
	crash, crashed := pastSpan-crashes[c.name], crashes[c.name] == 0
	for free := time.Duration(0); ; {
		next := slices.Index(ready, slices.Min(ready))
		asked := ready[next]
		at := max(asked, free)
		switch {
		case asked >= pastSpan:
			return events
		case at >= pastSpan: // it would wait until now
			ready[next] = pastSpan
			continue
		}
		lease := lockinfo.HistoryEvent{Kind: lockinfo.HistoryAcquired, Holder: users[next], Token: uint64(began.Add(at).UnixMicro())}
		if at > asked {
			note(asked, lockinfo.HistoryEvent{Kind: lockinfo.HistoryQueued, Holder: users[next]})
			lease.Kind, lease.Waited = lockinfo.HistoryHandedOver, at-asked
		}
		note(at, lease)
		free = min(at+draw(c.work), pastSpan)
		lease.Kind, lease.Waited, lease.Held = lockinfo.HistoryReleased, 0, free-at
		if !crashed && free > crash {
			crashed, lease.Kind = true, lockinfo.HistoryExpired
		}
		note(free, lease)
		ready[next] = free + draw(c.rest)
	}
}
