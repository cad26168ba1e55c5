package redislock

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
)

// Acquire implements driver.Engine.
func (e *Engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	if err := e.enter(ctx, req.Name); err != nil {
		return driver.AcquireReply{}, err
	}
	reply, err := e.exec(ctx, e.scripts.acquire,
		[]string{e.keys.lock(req.Name), e.keys.fence(req.Name), e.keys.tombstone(req.Name, req.LeaseID)},
		[]string{
			string(req.LeaseID), formatMS(req.TTL), strconv.FormatUint(req.MinToken, 10), formatHolder(req.Holder),
			formatMS(driver.TokenMemory), strconv.FormatInt(driver.MaxTokenLead.Microseconds(), 10),
		})
	if err != nil {
		return driver.AcquireReply{}, err
	}
	return parseAcquire(reply, req.MinToken)
}

// Extend implements driver.Engine. All requests go out as one command; in a
// Redis Cluster, as one per slot, at the same time.
func (e *Engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	groups := map[uint16][]int{} // indexes into reqs
	for i, req := range reqs {
		if errs[i] = e.enter(ctx, req.Name); errs[i] == nil {
			group := e.groupOf(req.Name)
			groups[group] = append(groups[group], i)
		}
	}
	var wg sync.WaitGroup // one goroutine per group; each writes its own elements of errs
	for _, group := range groups {
		wg.Go(func() { e.extendGroup(ctx, reqs, group, errs) })
	}
	wg.Wait()
	return errs
}

// groupOf returns the same number for names that one script call may treat
// together.
func (e *Engine) groupOf(name string) uint16 {
	if e.client.Mode() != rueidis.ClientModeCluster {
		return 0
	}
	return slot(e.keys.lock(name))
}

// extendGroup extends the requests with the given indexes in one call.
func (e *Engine) extendGroup(ctx context.Context, reqs []driver.ExtendRequest, group []int, errs []error) {
	keys := make([]string, 0, len(group))
	args := make([]string, 0, 2*len(group))
	for _, i := range group {
		keys = append(keys, e.keys.lock(reqs[i].Name))
		args = append(args, string(reqs[i].LeaseID), formatMS(reqs[i].TTL))
	}
	reply, err := e.exec(ctx, e.scripts.extend, keys, args)
	answers := make([]error, len(group))
	if err == nil {
		err = parseExtend(reply, answers)
	}
	for n, i := range group {
		if errs[i] = err; err == nil {
			errs[i] = answers[n]
		}
	}
}

// Release implements driver.Engine. The release is published, so that those
// who watch the name try at once.
func (e *Engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if err := e.enter(ctx, req.Name); err != nil {
		return err
	}
	remember := "0"
	if req.Cancel {
		remember = formatMS(driver.TombstoneTTL)
	}
	reply, err := e.exec(ctx, e.scripts.release,
		[]string{e.keys.lock(req.Name), e.keys.tombstone(req.Name, req.LeaseID)},
		[]string{string(req.LeaseID), formatMS(max(req.KeepFor, 0)), remember, e.keys.channel(req.Name)})
	if err != nil {
		return err
	}
	return parseRelease(reply)
}

// Inspect implements driver.Engine.
func (e *Engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	if err := e.enter(ctx, name); err != nil {
		return driver.Lock{}, err
	}
	found, err := e.inspect(ctx, []string{name})
	if err != nil {
		return driver.Lock{}, err
	}
	return found[0].lock, found[0].err
}

// An inspection is what the store knows of one name, or why it cannot say.
type inspection struct {
	lock driver.Lock
	err  error
}

// inspect asks for names that one script call may treat together.
func (e *Engine) inspect(ctx context.Context, names []string) ([]inspection, error) {
	keys := make([]string, 0, 2*len(names))
	for _, name := range names {
		keys = append(keys, e.keys.lock(name), e.keys.fence(name))
	}
	reply, err := e.exec(ctx, e.scripts.inspect, keys, nil)
	if err != nil {
		return nil, err
	}
	items, ok := reply.([]any)
	if !ok || len(items) != len(names) {
		return nil, errMalformed("inspect", reply)
	}
	found := make([]inspection, len(names))
	for i, name := range names {
		found[i].lock, found[i].err = parseInspect(name, items[i])
	}
	return found, nil
}
