package pglock

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Outcomes of refresh in addition to driver.Outcome; usedUp is another.
const (
	placeLost driver.Outcome = 100
	rowBusy   driver.Outcome = 103
)

// Watch implements driver.Queuer. A hand-over by this engine notifies the watch directly; a
// hand-over by another engine arrives on the listening connection.
func (e *engine) Watch(id lockinfo.LeaseID) driver.Watch { return e.watches.Watch(id) }

// Refresh implements driver.Queuer.
func (e *engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	replies := make([]driver.RefreshReply, len(reqs))
	inBatches(ctx, len(reqs), func(i int) string { return reqs[i].Name }, func(some []int, k kind) (busy []int) {
		answers, err := e.refresh(ctx, reqs, some, k)
		for at, i := range some {
			if err != nil {
				replies[i] = driver.RefreshReply{Err: err}
			} else if a := answers[at]; driver.Outcome(a.Outcome) == rowBusy {
				busy = append(busy, i)
			} else {
				replies[i] = a.refreshed()
			}
		}
		return busy
	})
	return replies
}

// refresh sends some of the requests in one statement.
func (e *engine) refresh(ctx context.Context, reqs []driver.RefreshRequest, some []int, k kind) (answers []answer, err error) {
	var names, ids []string
	var ttls []int64
	for _, i := range some {
		names, ids = append(names, reqs[i].Name), append(ids, string(reqs[i].LeaseID))
		ttls = append(ttls, micros(reqs[i].WaiterTTL))
	}
	err = e.change(ctx, k, "refresh", []any{names, ids, ttls, k == waiting, e.opts.History}, inJSON(&answers))
	return answers, err
}

// refreshed returns the reply to one request of a batch.
func (a *answer) refreshed() (reply driver.RefreshReply) {
	switch driver.Outcome(a.Outcome) {
	case placeLost:
		reply.Err = driver.ErrLost
	case driver.Granted:
		reply.Outcome, reply.Token = driver.Granted, a.Token
	default:
		reply.AcquireReply, reply.Err = a.reply(lockinfo.Exclusive, 0)
	}
	return reply
}
