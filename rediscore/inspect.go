package rediscore

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// Inspect implements driver.Engine.
func (e *Engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	if err := e.store.Enter(ctx, name); err != nil {
		return driver.Lock{}, err
	}
	found, err := e.InspectAll(ctx, []string{name}, driver.ShownPlaces)
	if err != nil {
		return driver.Lock{}, err
	}
	return found[0].Lock, found[0].Err
}

// An Inspection is what the store knows of one name, or why it cannot say.
type Inspection struct {
	Lock driver.Lock
	Err  error
}

// An inspection is an Inspection that is being made.
type inspection struct {
	Inspection

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

// InspectAll asks for names that one script call may treat together, with at
// most so many places of each.
func (e *Engine) InspectAll(ctx context.Context, names []string, places int) ([]Inspection, error) {
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
	all := make([]Inspection, len(found))
	for i := range found {
		if err := e.inspectRest(ctx, &found[i], places); err != nil {
			return nil, err
		}
		found[i].describe()
		all[i] = found[i].Inspection
	}
	return all, nil
}

// inspectSome is one call of inspect.lua.
func (e *Engine) inspectSome(ctx context.Context, names []string, places int, from string) ([]any, error) {
	each := e.scripts.Inspect.EachKeys
	keys := make([]string, 0, len(each)*len(names))
	for _, name := range names {
		keys = e.store.keys.Append(keys, each, name, "")
	}
	reply, err := e.store.Eval(ctx, e.scripts.Inspect, keys, []string{strconv.Itoa(places), from})
	if err != nil {
		return nil, err
	}
	items, ok := reply.([]any)
	if !ok || len(items) != len(names) {
		return nil, form.Malformed("inspect", reply)
	}
	return items, nil
}

// inspectRest asks for what one call could not look at.
func (e *Engine) inspectRest(ctx context.Context, found *inspection, places int) error {
	name := found.Lock.Name
	for found.Err == nil && found.next != "" && len(found.places) < places {
		items, err := e.inspectSome(ctx, []string{name}, places, found.next)
		if err != nil {
			return err
		}
		var page inspection
		page.parse(name, items[0])
		found.Err, found.next = page.Err, page.next
		found.places = append(found.places, page.places[:min(len(page.places), places-len(found.places))]...)
	}
	if found.Err != nil || !found.rest {
		return nil
	}
	known := map[string]bool{}
	for _, l := range found.leases {
		known[l.name] = true
	}
	group, _, _ := strings.Cut(strings.TrimPrefix(found.value, "*"), " ")
	keys := e.store.keys.Of(e.scripts.InspectRest.Keys, name, "")
	for cursor := ""; cursor != "0"; {
		reply, err := e.store.Eval(ctx, e.scripts.InspectRest, keys, []string{cmp.Or(cursor, "0"), group})
		if err != nil {
			return err
		}
		items, _ := reply.([]any)
		if len(items) != 2 {
			return form.Malformed("inspect", reply)
		}
		next, ok1 := items[0].(string)
		leases, ok2 := parseEntries(items[1])
		if !ok1 || !ok2 {
			return form.Malformed("inspect", reply)
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
