package door

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// partLate is how much later than the first part of a batch the others may be answered.
// INVARIANT I9: what hangs delays no other.
const partLate = 100 * time.Millisecond

// ErrPartLate is the error of what was asked of a part of the store that is late. It is
// not definite.
var ErrPartLate = errors.New("this part of the store does not answer")

// Split asks for the parts of a batch by the routes of their names, all at the same time,
// and returns the replies in the order of the requests. router is nil if there are no
// routes. failed makes the reply of an error.
func Split[Req, Reply any](
	ctx context.Context, router driver.Router, reqs []Req, name func(Req) string,
	ask func(context.Context, []Req) []Reply, failed func(error) Reply,
) []Reply {
	if router == nil || len(reqs) == 1 {
		return ask(ctx, reqs)
	}
	groups := map[uint32][]int{}
	for i, req := range reqs {
		route := router.Route(name(req))
		groups[route] = append(groups[route], i)
	}
	if len(groups) == 1 {
		return ask(ctx, reqs)
	}
	type part struct {
		indices []int
		replies []Reply
	}
	answers := make(chan part, len(groups))
	for _, indices := range groups {
		go func() { // which ends with the request: engines return soon after their context has ended
			some := make([]Req, len(indices))
			for i, index := range indices {
				some[i] = reqs[index]
			}
			answers <- part{indices, ask(ctx, some)}
		}()
	}
	replies := make([]Reply, len(reqs))
	for i := range replies {
		replies[i] = failed(ErrPartLate)
	}
	var late <-chan time.Time
	for range groups {
		select {
		case p := <-answers:
			for i, index := range p.indices {
				replies[index] = p.replies[i]
			}
			if late == nil {
				timer := time.NewTimer(partLate)
				defer timer.Stop()
				late = timer.C
			}
		case <-late:
			return replies
		}
	}
	return replies
}
