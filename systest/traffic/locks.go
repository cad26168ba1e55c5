package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/check"
	"github.com/holdfast-locks/holdfast/systest/model/lease"
)

const (
	// answerWithin is how long Locks waits for a reply.
	answerWithin = 150 * time.Millisecond
	// insist is how often a request is sent if there is no reply.
	insist = 5
)

// LocksLinger is how long after its return a request of Locks may still be under way, in a
// network that delays it by less than that.
const LocksLinger = time.Second

// Locks is a job: workers acquire locks, write to the resource that they protect, and report each
// request and its reply as a check.Op. Each worker has its own engine. On odd names every fourth
// worker uses the library, and the others use the bare engine. With Job.Waits every worker uses the
// library there.
func Locks(ctx context.Context, j Job) (any, error) {
	return check.Op{}, LocksOn(ctx, func() (driver.Engine, func(), error) { return j.openImpatient(ctx) }, j)
}

// LocksOn is Locks on the engines that open returns, and closes.
func LocksOn(ctx context.Context, open func() (e driver.Engine, closed func(), err error), j Job) error {
	transport := &http.Transport{MaxIdleConnsPerHost: j.Workers}
	defer transport.CloseIdleConnections()
	end := time.Now().Add(j.For)
	errs := make([]error, j.Workers)
	var all sync.WaitGroup
	var shared *holdfast.Client
	if j.Cohorts {
		e, closed, err := open()
		if err != nil {
			return err
		}
		defer closed()
		l := &locker{job: j, number: j.First, engine: e}
		if shared, closed, err = l.client(); err != nil {
			return err
		}
		defer closed()
	}
	for i := range j.Workers {
		l := &locker{
			job: j, number: j.First + i, rand: rand.New(rand.NewPCG(j.Seed, uint64(j.First+i))),
			http: &http.Client{Transport: transport, Timeout: patience},
		}
		all.Go(func() {
			e, closed, err := open()
			if err == nil {
				defer closed()
				l.engine, l.shared = e, shared
				err = l.run(ctx, end)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// A locker is one worker. Only its goroutine uses it.
type locker struct {
	job    Job
	number int
	rand   *rand.Rand
	engine driver.Engine
	shared *holdfast.Client // of the crew; nil if each worker has its own
	http   *http.Client
}

func (l *locker) run(ctx context.Context, end time.Time) error {
	library, closed, err := l.library()
	if err != nil {
		return err
	}
	defer closed()
	for time.Now().Before(end) && ctx.Err() == nil {
		n := l.rand.IntN(l.job.Names)
		name := fmt.Sprintf("lock-%d", n)
		if n%2 == 1 && (l.job.Waits || l.number%4 == 0) {
			err = library.turn(ctx, name)
		} else {
			err = l.turn(ctx, name)
		}
		if err != nil {
			return err
		}
		l.sleep(ctx, 5*time.Millisecond)
	}
	return nil
}

// chance returns true with a probability in percent.
func (l *locker) chance(percent int) bool { return l.rand.IntN(100) < percent }

// sleep waits for a random time shorter than most, or until ctx ends.
func (l *locker) sleep(ctx context.Context, most time.Duration) {
	select {
	case <-time.After(time.Duration(l.rand.Int64N(int64(most)))):
	case <-ctx.Done():
	}
}

// ask records one request, which do sends.
func (l *locker) ask(ctx context.Context, o check.Op, do func(ctx context.Context, o *check.Op) error) check.Op {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	o.Client, o.Call = l.number, check.Now()
	err := do(ctx, &o)
	o.Return = check.Now()
	switch {
	case err == nil:
	case errors.Is(err, driver.ErrLost):
		o.Outcome = lease.Lost
	case errors.Is(err, driver.ErrUnavailable):
		o.Outcome = lease.Failed
	default:
		o.Outcome = lease.Unknown
	}
	l.job.Out(o)
	return o
}

// insist repeats a request until it has a reply, or insist times. It reports whether a reply is
// missing.
func (l *locker) insist(ctx context.Context, request func() check.Op) (o check.Op, unanswered bool) {
	for try := 0; try < insist; try++ {
		if try > 0 {
			l.sleep(ctx, 10*time.Millisecond)
		}
		o = request()
		if o.Outcome != lease.Unknown && o.Outcome != lease.Failed {
			return o, unanswered
		}
		unanswered = unanswered || o.Outcome == lease.Unknown
	}
	return o, unanswered
}

func (l *locker) acquire(ctx context.Context, name string, id lockinfo.LeaseID) check.Op {
	o := check.Op{Name: name, Kind: lease.Acquire, LeaseID: string(id), TTL: l.job.TTL}
	return l.ask(ctx, o, func(ctx context.Context, o *check.Op) error {
		reply, err := l.engine.Acquire(ctx, driver.AcquireRequest{Name: name, LeaseID: id, TTL: o.TTL})
		if err != nil {
			return err
		}
		switch reply.Outcome {
		case driver.Granted:
			o.Token, o.Deadline = reply.Token, o.Call+trusted(o.TTL)
		case driver.Held:
			o.Outcome, o.LeftFree = lease.Held, reply.Foreign
		case driver.Cancelled:
			o.Outcome = lease.Cancelled
		}
		return nil
	})
}

// trusted returns how long a lease may be trusted, as the library computes it.
func trusted(ttl time.Duration) int64 { return int64(ttl - ttl/10 - 2*time.Millisecond) }

func (l *locker) extend(ctx context.Context, name string, id lockinfo.LeaseID) check.Op {
	// By more than its first TTL, so that a store that ignores the new TTL is noticed.
	o := check.Op{Name: name, Kind: lease.Extend, LeaseID: string(id), TTL: l.job.TTL * 3 / 2}
	return l.ask(ctx, o, func(ctx context.Context, o *check.Op) error {
		err := l.engine.Extend(ctx, []driver.ExtendRequest{{Name: name, LeaseID: id, TTL: o.TTL}})[0]
		if err == nil {
			o.Deadline = o.Call + trusted(o.TTL)
		}
		return err
	})
}

func (l *locker) release(ctx context.Context, kind lease.Kind, name string, id lockinfo.LeaseID, cancel bool) check.Op {
	o := check.Op{Name: name, Kind: kind, LeaseID: string(id), TTL: l.job.TTL}
	return l.ask(ctx, o, func(ctx context.Context, o *check.Op) error {
		return l.engine.Release(ctx, driver.ReleaseRequest{Name: name, LeaseID: id, Cancel: cancel})
	})
}

// turn tries to acquire a lock, works, and releases it.
func (l *locker) turn(ctx context.Context, name string) error {
	id := lockinfo.NewLeaseID()
	got, uncertain := l.insist(ctx, func() check.Op { return l.acquire(ctx, name, id) })
	if got.Outcome != lease.Done {
		if uncertain {
			l.cancel(ctx, name, id)
		}
		return nil
	}
	again, err := l.work(ctx, got)
	if err != nil {
		return err
	}
	uncertain = uncertain || again
	if l.chance(4) { // the worker abandons its lease
		return nil
	}
	l.insist(ctx, func() check.Op { return l.release(ctx, lease.Release, name, id, uncertain) })
	if l.chance(10) { // the worker does not know that it has released the lease
		l.extend(ctx, name, id)
		l.release(ctx, lease.Release, name, id, false)
	}
	return nil
}

// cancel ensures that an acquire without a reply has no effect. Often it sends the acquire again
// after that, like a network that delivers it late.
func (l *locker) cancel(ctx context.Context, name string, id lockinfo.LeaseID) {
	off := func() check.Op { return l.release(ctx, lease.Cancel, name, id, true) }
	l.insist(ctx, off)
	for range l.rand.IntN(4) {
		switch l.acquire(ctx, name, id).Outcome {
		case lease.Cancelled:
			return
		case lease.Done, lease.Unknown: // the store may have lost the cancel
			l.insist(ctx, off)
		}
	}
}

// work does the work of a holder while the lease may be trusted, and sometimes when it may not. It
// reports whether a repeat of the acquire had no reply.
func (l *locker) work(ctx context.Context, got check.Op) (uncertain bool, err error) {
	name, id := got.Name, lockinfo.LeaseID(got.LeaseID)
	claim := fence.NewClaim(got.Token, id)
	if accepted, err := write(l.http, l.job.Resource, name, claim); err != nil || !accepted {
		return false, err // the lease has ended
	}
	if l.chance(20) {
		_, uncertain = l.insist(ctx, func() check.Op { return l.acquire(ctx, name, id) })
	}
	if l.chance(5) {
		l.sleep(ctx, l.job.TTL*3/2) // perhaps too long
	} else {
		l.sleep(ctx, l.job.Hold)
	}
	if l.chance(30) {
		l.insist(ctx, func() check.Op { return l.extend(ctx, name, id) })
		l.sleep(ctx, l.job.Hold)
	}
	if l.chance(30) {
		_, err = write(l.http, l.job.Resource, name, claim)
	}
	return uncertain, err
}
