package door

import (
	"context"
	"errors"
	"time"
)

// partLate is how long Split waits for the other parts of a batch after the first reply.
// INVARIANT I9: a part that hangs does not delay the others.
const partLate = 100 * time.Millisecond

// errPartLate is the error of requests to a part that is late. It is not definite.
var errPartLate = errors.New("this part of the store does not answer")

// Split sends the requests of each route as a batch, all batches at the same time. It returns the
// replies in the order of the requests, and the routes of the names if there are several. failed
// makes the reply for an error. Split itself fails only after a panic, see Guard.
func Split[Req, Reply any](
	ctx context.Context, r *Request, reqs []Req, name func(Req) string, ask func(context.Context, []Req) []Reply, failed func(error) Reply,
) (replies []Reply, routes []uint32, err error) {
	groups := map[uint32][]int{} // indices of requests, by route
	if router := r.House.Features.Router; router != nil {
		for i, req := range reqs {
			routes = append(routes, router.Route(name(req)))
			groups[routes[i]] = append(groups[routes[i]], i)
		}
	}
	switch {
	case len(reqs) == 0:
		return nil, nil, nil
	case len(groups) <= 1:
		return ask(ctx, reqs), nil, nil
	}
	type part struct {
		indices []int
		replies []Reply
		fault   error
	}
	answers := make(chan part, len(groups))
	for _, indices := range groups {
		go func() { // ends with the request: engines return soon after their context has ended
			some := make([]Req, len(indices))
			for i, index := range indices {
				some[i] = reqs[index]
			}
			p := part{indices: indices}
			p.fault = r.Guard(func() { p.replies = ask(ctx, some) })
			answers <- p
		}()
	}
	replies = make([]Reply, len(reqs))
	for i := range replies {
		replies[i] = failed(errPartLate)
	}
	var late <-chan time.Time
	for range groups {
		select {
		case p := <-answers:
			if p.fault != nil {
				return nil, nil, p.fault
			}
			for i, index := range p.indices {
				replies[index] = p.replies[i]
			}
			if late == nil {
				timer := time.NewTimer(partLate)
				defer timer.Stop()
				late = timer.C
			}
		case <-late:
			return replies, routes, nil
		}
	}
	return replies, routes, nil
}
