package door

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// partLate is how long Split waits for the other parts of a batch after the first reply.
// INVARIANT I9: a part that hangs does not delay the others.
const partLate = 100 * time.Millisecond

// errPartLate is the error of requests to a part that is late. It is not definite.
var errPartLate = errors.New("this part of the store does not answer")

// Routes returns the routes of the names of requests, or nil if all may go together.
// router is nil if there are no routes.
func Routes[Req any](router driver.Router, reqs []Req, name func(Req) string) []uint32 {
	if router == nil || len(reqs) == 1 {
		return nil
	}
	routes := make([]uint32, len(reqs))
	for i, req := range reqs {
		routes[i] = router.Route(name(req))
	}
	if !slices.ContainsFunc(routes, func(route uint32) bool { return route != routes[0] }) {
		return nil
	}
	return routes
}

// Split sends the requests of each route as a batch, all batches at the same time, and returns
// the replies in the order of the requests. failed makes the reply for an error. Split itself
// fails only after a panic, see Guard.
func Split[Req, Reply any](
	ctx context.Context, r *Request, routes []uint32, reqs []Req, ask func(context.Context, []Req) []Reply, failed func(error) Reply,
) ([]Reply, error) {
	if routes == nil {
		return ask(ctx, reqs), nil
	}
	type part struct {
		indices []int
		replies []Reply
		fault   error
	}
	groups := map[uint32][]int{}
	for i, route := range routes {
		groups[route] = append(groups[route], i)
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
	replies := make([]Reply, len(reqs))
	for i := range replies {
		replies[i] = failed(errPartLate)
	}
	var late <-chan time.Time
	for range groups {
		select {
		case p := <-answers:
			if p.fault != nil {
				return nil, p.fault
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
			return replies, nil
		}
	}
	return replies, nil
}
