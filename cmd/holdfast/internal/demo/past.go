package demo

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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
func (p *pastEngine) OnEvent(told func(lockinfo.HistoryEvent)) (stop func()) {
	for _, e := range p.past {
		told(p.aged(e))
	}
	return p.Forward.OnEvent(told)
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
	users      []lockinfo.Holder
	work, rest [2]float64 // bounds of random times, in seconds
}

// courses returns the courses of all names. They resemble the work of the cast.
func courses() (all []course) {
	who := func(host, user, program string) lockinfo.Holder {
		return lockinfo.Holder{Host: host, User: user, Program: program, PID: 400 + len(host)*len(program)*37}
	}
	shops := []lockinfo.Holder{who("web-1", "www", "shop"), who("web-2", "www", "shop"), who("web-3", "www", "shop"), who("web-4", "www", "shop")}
	for i := range 40 {
		all = append(all, course{fmt.Sprint("orders/", 41_200+i), shops[i%4 : i%4+1], [2]float64{0.4, 2.5}, [2]float64{40, 140}})
	}
	scheduler := course{"scheduler/leader", nil, [2]float64{90, 90}, [2]float64{0, 0}}
	for _, host := range []string{"batch-1", "batch-2", "batch-3"} {
		candidate := who(host, "app", "scheduler")
		candidate.Labels = map[string]string{holdfast.LeadLabel: "1"}
		scheduler.users = append(scheduler.users, candidate)
	}
	return append(all, scheduler,
		course{"deploy/shop", []lockinfo.Holder{who("ci-1", "ci", "deploy"), who("ci-2", "ci", "deploy"), who("ci-3", "ci", "deploy")}, [2]float64{8, 16}, [2]float64{3, 9}},
		course{"deploy/search", []lockinfo.Holder{who("ci-1", "ci", "deploy")}, [2]float64{8, 16}, [2]float64{3, 9}},
		course{report, []lockinfo.Holder{who("batch-1", "finance", "report"), who("batch-2", "finance", "report")}, [2]float64{70, 110}, [2]float64{5, 8}},
		course{"nightly/backup", []lockinfo.Holder{who("batch-1", "root", "backup")}, [2]float64{9, 16}, [2]float64{8, 12}},
		course{"nightly/vacuum", []lockinfo.Holder{who("batch-2", "postgres", "vacuum")}, [2]float64{6, 12}, [2]float64{5, 9}},
		course{"catalog", []lockinfo.Holder{who("batch-2", "search", "indexer"), who("web-1", "www", "shop")}, [2]float64{3, 6}, [2]float64{2, 6}},
		course{hung, []lockinfo.Holder{who("worker-3", "app", "warm-up")}, [2]float64{120, 180}, [2]float64{4, 8}},
		course{transcode, []lockinfo.Holder{who("worker-4", "app", "transcoder")}, [2]float64{3, 6}, [2]float64{2, 4}},
		course{"stock/munich", []lockinfo.Holder{who("stock-3", "app", "inventory"), who("stock-2", "app", "mover")}, [2]float64{20, 30}, [2]float64{3, 5}},
	)
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
	token := uint64(time.Now().Add(-pastSpan - time.Hour).UnixMicro())
	tokens := map[uint64]uint64{} // by the number that course.events has given to a lease
	for i := range events {
		e := &events[i]
		e.ID = fmt.Sprintf("past-%x-%x", seed, i)
		if e.Token == 0 {
			continue
		}
		if tokens[e.Token] == 0 {
			token++
			tokens[e.Token] = token
		}
		e.Token = tokens[e.Token]
	}
	return events
}

// events plays a course from pastSpan ago until now. Leases and waits that last until now end
// now.
func (c *course) events(r *rand.Rand) (events []lockinfo.HistoryEvent) {
	draw := func(from [2]float64) time.Duration {
		return time.Duration((from[0] + r.Float64()*(from[1]-from[0])) * float64(time.Second))
	}
	ready := make([]time.Duration, len(c.users)) // when each user wants the lock next, since the beginning
	for i := range ready {
		ready[i] = draw(c.rest)
	}
	note := func(kind lockinfo.HistoryKind, at time.Duration, who lockinfo.Holder, e lockinfo.HistoryEvent) {
		e.Kind, e.Name, e.Ago, e.Holder = kind, c.name, pastSpan-at, who
		events = append(events, e)
	}
	crash, crashed := pastSpan-crashes[c.name], crashes[c.name] == 0
	for free := time.Duration(0); ; {
		next := slices.Index(ready, slices.Min(ready))
		who, asked := c.users[next], ready[next]
		if asked >= pastSpan {
			return events
		}
		at := max(asked, free)
		lease := lockinfo.HistoryEvent{Token: r.Uint64() | 1}
		switch {
		case at >= pastSpan:
			note(lockinfo.HistoryQueued, asked, who, lockinfo.HistoryEvent{})
			note(lockinfo.HistoryGaveUp, pastSpan, who, lockinfo.HistoryEvent{Waited: pastSpan - asked})
			ready[next] = pastSpan
			continue
		case at > asked:
			note(lockinfo.HistoryQueued, asked, who, lockinfo.HistoryEvent{})
			note(lockinfo.HistoryHandedOver, at, who, lockinfo.HistoryEvent{Token: lease.Token, Waited: at - asked})
		default:
			note(lockinfo.HistoryAcquired, at, who, lease)
		}
		free = min(at+draw(c.work), pastSpan)
		kind := lockinfo.HistoryReleased
		if !crashed && free > crash {
			crashed, kind = true, lockinfo.HistoryExpired
		}
		lease.Held = free - at
		note(kind, free, who, lease)
		ready[next] = free + draw(c.rest)
	}
}
