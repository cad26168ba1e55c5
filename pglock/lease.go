package pglock

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A batch does not wait for a row that another transaction has locked, so that one name does not
// delay other leases. It retries such requests looks times, after growing pauses, and then waits
// for each of their names separately.
const (
	looks = 5
	pause = time.Millisecond
)

// inBatches calls do with the indexes of n requests, and again with the busy ones that do returns,
// whose rows another transaction has locked. These calls are of kind renewing and must not wait for
// a row. The requests that remain busy are made again as kind waiting, one name at a time.
func inBatches(ctx context.Context, n int, name func(i int) string, do func(some []int, k kind) (busy []int)) {
	some := make([]int, n)
	for i := range some {
		some[i] = i
	}
	for try := range looks {
		if some = do(some, renewing); len(some) == 0 {
			return
		}
		ask.Sleep(ctx, pause<<try)
	}
	byName := map[string][]int{}
	for _, i := range some {
		byName[name(i)] = append(byName[name(i)], i)
	}
	var all sync.WaitGroup
	for _, some := range byName {
		all.Go(func() { do(some, waiting) })
	}
	all.Wait()
}

// Results of extend for one lease.
const (
	extended = iota
	leaseLost
)

// Extend implements driver.Engine.
func (e *engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	inBatches(ctx, len(reqs), func(i int) string { return reqs[i].Name }, func(some []int, k kind) (busy []int) {
		answers, err := e.extend(ctx, reqs, some, k)
		for at, i := range some {
			switch {
			case err != nil:
				errs[i] = err
			case answers[at] == extended:
				errs[i] = nil
			case answers[at] == leaseLost:
				errs[i] = driver.ErrLost
			default:
				busy = append(busy, i)
			}
		}
		return busy
	})
	return errs
}

// extend sends some of the requests in one statement.
func (e *engine) extend(ctx context.Context, reqs []driver.ExtendRequest, some []int, k kind) (answers []int32, err error) {
	var names, ids []string
	var ttls, tokens []int64
	for _, i := range some {
		names, ids = append(names, reqs[i].Name), append(ids, string(reqs[i].LeaseID))
		ttls, tokens = append(ttls, micros(reqs[i].TTL)), append(tokens, int64(reqs[i].Token))
	}
	err = e.call(ctx, k, "extend", []any{names, ids, ttls, tokens, k == waiting}, &answers)
	return answers, err
}

// Release implements driver.Engine. The commit also grants the lock to the next in the queue.
func (e *engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	err := e.changeLease(ctx, "release", req.Name, string(req.LeaseID), micros(req.KeepFor), req.Cancel, req.Lost, e.opts.History)
	if err == nil {
		e.losses.Ended()
	}
	return err
}

// changeLease calls a function that reports whether it has found the lease.
func (e *engine) changeLease(ctx context.Context, function string, args ...any) error {
	var found bool
	err := e.change(ctx, ending, function, args, &found)
	if err == nil && !found {
		err = driver.ErrLost
	}
	return err
}

// Downgrade implements driver.Downgrader.
func (e *engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	return e.changeLease(ctx, "downgrade", req.Name, string(req.LeaseID), e.opts.History)
}
