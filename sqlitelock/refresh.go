package sqlitelock

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// A refreshing is one request of a batch of Refresh, with its reply.
type refreshing struct {
	*driver.RefreshRequest
	*driver.RefreshReply
	seq int64 // of the place, if it has one
}

// Refresh implements driver.Queuer. The batch is one transaction, or several
// if there is much to hand over. A name is settled once, however many of its
// places are in the batch.
func (e *engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	replies := make([]driver.RefreshReply, len(reqs))
	batch := make([]refreshing, len(reqs))
	err := e.transactAll(ctx, len(reqs), func(t *tx) error {
		names := map[string][]*refreshing{}
		for i := range reqs {
			replies[i], batch[i] = driver.RefreshReply{}, refreshing{&reqs[i], &replies[i], 0}
			names[reqs[i].Name] = append(names[reqs[i].Name], &batch[i])
		}
		for name, some := range names {
			if err := t.refresh(name, some); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return slices.Repeat([]driver.RefreshReply{{Err: err}}, len(reqs))
	}
	e.rank(ctx, batch)
	return replies
}

// refresh serves the requests of a batch for one name. An error of a single request is in its Err.
func (t *tx) refresh(name string, some []*refreshing) error {
	v, err := t.settle(name, "")
	if err != nil {
		return err
	}
	blocker := v.blocker(t.now)
	for _, r := range some {
		if r.WaiterTTL == 0 {
			left, err := t.endPlaces(giveUpPlaceSQL, name, r.LeaseID)
			if err == nil && left > 0 {
				r.Blocker, err = blocker, t.serveNext(name, v)
			}
			if err != nil {
				return err
			}
			if left > 0 {
				continue
			}
		}
		expiry := t.now.after(r.WaiterTTL)
		if found, err := t.sql.one(lengthenPlaceSQL, []any{name, r.LeaseID, expiry}, &r.seq); err != nil {
			return err
		} else if found {
			r.Blocker, r.Err = blocker, v.Stuck
			continue
		}
		// Not extended: its holder does not know of the grant yet. INVARIANT I7.
		found, err := t.sql.one(heldSQL, []any{name, t.bootID, r.LeaseID, t.now.boot}, &r.Token)
		if err != nil {
			return err
		}
		if r.Outcome = driver.Granted; !found {
			r.Outcome, r.Err = driver.Held, driver.ErrLost
		}
	}
	return nil
}

// rank fills in the positions of the places in a batch.
func (e *engine) rank(ctx context.Context, batch []refreshing) {
	batch = slices.DeleteFunc(batch, func(r refreshing) bool { return r.seq == 0 || r.Err != nil })
	slices.SortFunc(batch, func(a, b refreshing) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.seq, b.seq))
	})
	for len(batch) > 0 {
		name, n := batch[0].Name, 0
		var seqs []int64
		for ; n < len(batch) && batch[n].Name == name; n++ {
			seqs = append(seqs, batch[n].seq)
		}
		ranks, all := e.ranks(ctx, name, seqs)
		for i, rank := range ranks {
			batch[i].Place, batch[i].Queue = rank, all
		}
		batch = batch[n:]
	}
}

// ranks returns the positions of some rows, given in order, and the length of the queue. It counts
// after the transaction, in one pass: counting a long queue is slow and must not hold the write
// lock. If the count fails, a waiter takes itself for the first, which is harmless.
func (e *engine) ranks(ctx context.Context, name string, seqs []int64) (ranks []int, all int) {
	gaps, last := make([][2]int64, len(seqs)+1), int64(0)
	for i, seq := range seqs {
		gaps[i], last = [2]int64{last, seq}, seq
	}
	gaps[len(seqs)] = [2]int64{last, math.MaxInt64}
	list, _ := json.Marshal(gaps) // numbers
	counts, err := answer(ctx, e.query, func(r reader) ([]int, error) { return r.counts(name, string(list)) })
	if err != nil || len(counts) != len(gaps) {
		counts = make([]int, len(gaps))
	}
	rank := 1
	for _, n := range counts[:len(seqs)] {
		rank += n
		ranks = append(ranks, rank)
	}
	return ranks, max(rank-1+counts[len(seqs)], rank)
}

// counts returns how many places of a name are in each gap of a list.
func (r *reader) counts(name, gaps string) ([]int, error) {
	return scanAll(r.sql, ranksSQL, []any{name, gaps}, func(n *int) []any { return []any{n} })
}

// count returns the length of a queue, or known if that is 0 or the count fails. Like ranks it
// counts outside the transaction.
func (e *engine) count(ctx context.Context, name string, known int) int {
	if known == 0 {
		return 0
	}
	n, _ := answer(ctx, e.query, func(r reader) (n int, err error) {
		_, err = r.sql.one(totalsSQL, []any{name, r.bootID, r.now.boot}, &n)
		return n, err
	})
	return max(n, known)
}
