package leasedoor

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// extendPart lengthens leases of one route. What fails is asked for again, as long as a
// request may take: an Extend that is repeated does no harm (INVARIANT I6).
func (d *leases) extendPart(ctx context.Context, reqs []driver.ExtendRequest) []result {
	results := make([]result, len(reqs))
	open := make([]int, len(reqs)) // indices of those that are not answered
	for i := range open {
		open[i] = i
	}
	f := ask.Until(ctx, requestTimeout, func(ctx context.Context) error {
		some := make([]driver.ExtendRequest, len(open))
		for i, index := range open {
			some[i] = reqs[index]
		}
		sent := time.Now() // INVARIANT I3: before the first byte is written
		errs := d.house.Engine.Extend(ctx, some)
		var again []int
		var last error
		for i, index := range open {
			res := result{sent, ask.Effective(ctx, errs[i])}
			if errors.Is(results[index].err, driver.ErrOutcomeUnknown) && errors.Is(res.err, driver.ErrUnavailable) {
				res = results[index] // an earlier copy may have been carried out
			}
			if results[index] = res; res.err != nil && !driver.Permanent(res.err) {
				again, last = append(again, index), errs[i]
			}
		}
		open = again
		return last
	})
	for _, index := range open {
		if results[index].err == nil { // nothing was sent
			results[index].err = f.Harmless()
		}
	}
	return results
}
