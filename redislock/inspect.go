package redislock

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// Inspect implements driver.Engine.
func (e *Engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	if err := e.enter(ctx, name); err != nil {
		return driver.Lock{}, err
	}
	found, err := e.inspect(ctx, []string{name}, driver.ShownPlaces)
	if err != nil {
		return driver.Lock{}, err
	}
	return found[0].lock, found[0].err
}

// An inspection is what the store knows of one name, or why it cannot say.
type inspection struct {
	lock driver.Lock
	err  error

	value  string
	left   int64 // ms; unheld if nobody has the lock
	now    int64 // ms of the server's clock
	leases []entry
	rest   bool // there are more leases
	places []entry
	next   string // number of the last place looked at, if there are more
}

// unheld is the ms left of a lock that nobody has.
const unheld = -2

// inspect asks for names that one script call may treat together, with at most
// so many places of each.
func (e *Engine) inspect(ctx context.Context, names []string, places int) ([]inspection, error) {
	found := make([]inspection, len(names))
	todo := make([]int, len(names))
	for i := range todo {
		todo[i] = i
	}
	for len(todo) > 0 {
		var asked []string
		for _, i := range todo {
			asked = append(asked, names[i])
		}
		items, err := e.inspectSome(ctx, asked, places, "-inf")
		if err != nil {
			return nil, err
		}
		var again []int
		for n, i := range todo {
			if isMore(items[n]) {
				again = append(again, i)
				continue
			}
			found[i].parse(names[i], items[n])
		}
		todo = again
	}
	for i := range found {
		if err := e.inspectRest(ctx, &found[i], places); err != nil {
			return nil, err
		}
		found[i].describe()
	}
	return found, nil
}

// inspectSome is one call of inspect.lua.
func (e *Engine) inspectSome(ctx context.Context, names []string, places int, from string) ([]any, error) {
	keys := make([]string, 0, 6*len(names))
	for _, name := range names {
		keys = append(keys, e.keys.state(name)[:6]...)
	}
	reply, err := e.exec(ctx, e.scripts.inspect, keys, []string{strconv.Itoa(places), from})
	if err != nil {
		return nil, err
	}
	items, ok := reply.([]any)
	if !ok || len(items) != len(names) {
		return nil, errMalformed("inspect", reply)
	}
	return items, nil
}

// inspectRest asks for what one call could not look at.
func (e *Engine) inspectRest(ctx context.Context, found *inspection, places int) error {
	name := found.lock.Name
	for found.err == nil && found.next != "" && len(found.places) < places {
		items, err := e.inspectSome(ctx, []string{name}, places, found.next)
		if err != nil {
			return err
		}
		var page inspection
		page.parse(name, items[0])
		found.err, found.next = page.err, page.next
		found.places = append(found.places, page.places[:min(len(page.places), places-len(found.places))]...)
	}
	if found.err != nil || !found.rest {
		return nil
	}
	known := map[string]bool{}
	for _, l := range found.leases {
		known[l.name] = true
	}
	group, _, _ := strings.Cut(strings.TrimPrefix(found.value, "*"), " ")
	keys := e.keys.state(name)
	for cursor := ""; cursor != "0"; {
		reply, err := e.exec(ctx, e.scripts.inspectRest, []string{keys[2], keys[5]}, []string{cmp.Or(cursor, "0"), group})
		if err != nil {
			return err
		}
		items, _ := reply.([]any)
		if len(items) != 2 {
			return errMalformed("inspect", reply)
		}
		next, ok1 := items[0].(string)
		leases, ok2 := parseEntries(items[1])
		if !ok1 || !ok2 {
			return errMalformed("inspect", reply)
		}
		cursor = next
		for _, l := range leases {
			if !known[l.name] && l.ends > found.now {
				known[l.name] = true
				found.leases = append(found.leases, l)
			}
		}
	}
	return nil
}
