package places_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/places"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A store replies to each refresh with the next of the replies, and then repeats the last one.
type store struct {
	driver.Queuer
	replies []driver.RefreshReply
}

func (s *store) Refresh(context.Context, []driver.RefreshRequest) []driver.RefreshReply {
	next := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	return []driver.RefreshReply{next}
}

// join returns a keeper of one place, and the place. The refreshes get the given replies.
func join(t *testing.T, all bool, was driver.Blocker, replies ...driver.RefreshReply) (*places.Keeper[time.Time], *places.Place[time.Time]) {
	k := &places.Keeper[time.Time]{}
	k.Init(places.Owner[time.Time]{
		Queuer: &store{replies: replies}, Now: time.Now,
		Spawn: func(send func(context.Context)) { go send(t.Context()) },
		Limit: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	})
	return k, k.Join(driver.RefreshRequest{Name: "a", WaiterTTL: k.Enter(time.Second)}, time.Second, &was, all)
}

// refreshed lets the keeper refresh its place the given number of times.
func refreshed(times int) {
	time.Sleep(time.Duration(times) * time.Second / 3)
	synctest.Wait()
}

func held(b driver.Blocker) driver.RefreshReply {
	return driver.RefreshReply{AcquireReply: driver.AcquireReply{Outcome: driver.Held, Blocker: b}}
}

// TestChangesWake checks that a reply wakes the waiter unless the same lease still blocks it.
func TestChangesWake(t *testing.T) {
	was := driver.Blocker{
		Holder: lockinfo.Holder{Host: "a", Labels: map[string]string{"k": "v"}}, Since: 3 * time.Second, ExpiresIn: time.Hour, Place: 2, Queue: 3,
	}
	with := func(change func(*driver.Blocker)) driver.RefreshReply {
		b := was
		change(&b)
		return held(b)
	}
	for name, tt := range map[string]struct {
		reply driver.RefreshReply
		wakes bool
	}{
		"the same":       {held(was), false},
		"later":          {with(func(b *driver.Blocker) { b.Since, b.ExpiresIn = b.Since+time.Second, time.Minute }), false},
		"another lease":  {with(func(b *driver.Blocker) { b.Since = time.Second }), true},
		"another holder": {with(func(b *driver.Blocker) { b.Holder.Host = "b" }), true},
		"another label":  {with(func(b *driver.Blocker) { b.Holder.Labels = map[string]string{"k": "w"} }), true},
		"place":          {with(func(b *driver.Blocker) { b.Place = 1 }), true},
		"queue":          {with(func(b *driver.Blocker) { b.Queue = 4 }), true},
		"released":       {with(func(b *driver.Blocker) { b.Released = true }), true},
		"foreign":        {with(func(b *driver.Blocker) { b.Foreign = true }), true},
		"granted":        {driver.RefreshReply{AcquireReply: driver.AcquireReply{Outcome: driver.Granted, Token: 7, Blocker: was}}, true},
		"error":          {driver.RefreshReply{Err: driver.ErrLost}, true},
	} {
		for _, all := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					k, p := join(t, all, was, tt.reply)
					defer k.Leave(p)
					refreshed(1)
					quiet := k.Quiet(p).Reply
					if len(p.Answers) == 1 != (tt.wakes || all) || (quiet == nil) != (tt.wakes || all) {
						t.Errorf("%d answers, quiet %v; wakes %v, all %v", len(p.Answers), quiet, tt.wakes, all)
					}
					if again := k.Quiet(p).Reply; again != nil {
						t.Errorf("the same reply twice: %v", again)
					}
				})
			})
		}
	}
}

// TestWokenAgain checks that the reply after an error wakes the waiter, because the store is
// available again. A reply without a change replaces a reply that the waiter has not received.
func TestWokenAgain(t *testing.T) {
	was, now := driver.Blocker{Place: 2, Queue: 2}, driver.Blocker{Place: 1, Queue: 1}
	for name, replies := range map[string][]driver.RefreshReply{
		"error":        {{Err: driver.ErrUnavailable}, held(was)},
		"not received": {held(now), held(now)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, p := join(t, false, was, replies...)
				defer k.Leave(p)
				refreshed(1)
				if name == "error" {
					<-p.Answers
				}
				refreshed(1)
				if len(p.Answers) != 1 {
					t.Fatal("the waiter was not woken")
				}
				if r := <-p.Answers; r.Reply.Err != nil || r.Reply.Place != replies[1].Place || time.Since(r.Sent) > time.Second/3 {
					t.Errorf("%+v, sent %s ago", r.Reply, time.Since(r.Sent))
				}
			})
		})
	}
}
