package driverdoor

import (
	"context"
	"errors"
	"time"
)

// partLate is how much later than the first part of a batch the others may be answered.
// INVARIANT I9: what hangs delays no other.
const partLate = 100 * time.Millisecond

// errPartLate is the error of what was asked of a part that is late. It is not definite.
var errPartLate = errors.New("this part of the store does not answer")

// split asks for the parts of a batch by the routes of their names, all at the same time.
// An engine that has not heard of the routes yet puts everything into one batch. If there
// were several routes split returns them, for each request.
func split[Req, Reply any](
	v *visit, reqs []Req, name func(Req) string, ask func(context.Context, []Req) []Reply, failed func(error) Reply,
) ([]Reply, []uint32) {
	routes, groups := group(v, reqs, name)
	if len(groups) <= 1 {
		return ask(v.ctx, reqs), nil
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
			answers <- part{indices, ask(v.ctx, some)}
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
			for i, index := range p.indices {
				replies[index] = p.replies[i]
			}
			if late == nil {
				timer := time.NewTimer(partLate)
				defer timer.Stop()
				late = timer.C
			}
		case <-late:
			return replies, routes
		}
	}
	return replies, routes
}

// group returns the routes of the requests, and the indices of those of each route.
func group[Req any](v *visit, reqs []Req, name func(Req) string) (routes []uint32, groups map[uint32][]int) {
	router := v.House.Features.Router
	if router == nil || len(reqs) == 1 {
		return nil, nil
	}
	routes, groups = make([]uint32, len(reqs)), map[uint32][]int{}
	for i, req := range reqs {
		routes[i] = router.Route(name(req))
		groups[routes[i]] = append(groups[routes[i]], i)
	}
	return routes, groups
}
