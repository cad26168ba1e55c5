package rediscore

import (
	"cmp"
	"context"
	"strconv"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// Inspect implements driver.Engine.
func (e *engine) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	found, err := e.InspectAll(ctx, []string{name}, driver.ShownPlaces)
	if err != nil {
		return lockinfo.LockState{}, err
	}
	return found[0].Lock, found[0].Err
}

// InspectAll reads names, with at most the given number of places of each.
func (e *engine) InspectAll(ctx context.Context, names []string, places int) ([]Inspection, error) {
	found, err := e.inspectPage(ctx, names, places, "-inf")
	if err != nil {
		return nil, err
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

// inspectPage reads names, with the places after the number from.
func (e *engine) inspectPage(ctx context.Context, names []string, places int, from string) ([]inspection, error) {
	found, failed := evalNames(ctx, e.store, "inspect", e.scripts.Inspect, []string{strconv.Itoa(places), from}, names,
		func(name string, item any) (inspection, error) { return parseInspection(name, item), nil })
	return found, cmp.Or(failed...)
}

// inspectRest reads what did not fit into the first call.
func (e *engine) inspectRest(ctx context.Context, found *inspection, places int) error {
	name := found.Lock.Name
	for found.Err == nil && found.next != "" && (found.part || len(found.places) < places) {
		page, err := e.inspectPage(ctx, []string{name}, places, found.next)
		if err != nil {
			return err
		}
		found.Err, found.next = page[0].Err, page[0].next
		found.places = append(found.places, page[0].places...)
		if found.part && page[0].part {
			found.Lock.QueueLength += page[0].Lock.QueueLength
		} else if found.part {
			found.Lock.QueueLength, found.part = page[0].Lock.QueueLength, false
		}
	}
	found.places = found.places[:min(len(found.places), places)]
	if found.Err != nil || !found.rest {
		return nil
	}
	known := map[string]bool{}
	for _, l := range found.leases {
		known[l.name] = true
	}
	group, _, _ := parseGroup(found.value)
	for cursor := ""; cursor != "0"; {
		reply, err := e.store.EvalAbout(ctx, e.scripts.InspectRest, name, "", cmp.Or(cursor, "0"), group)
		if err != nil {
			return err
		}
		var page any
		ok := form.Read(reply, &cursor, &page)
		leases, whole := parseEntries(page)
		if !ok || !whole {
			return form.Malformed("inspect", reply)
		}
		for _, l := range leases {
			if !known[l.name] && l.ends > found.now {
				known[l.name] = true
				found.leases = append(found.leases, l)
			}
		}
	}
	return nil
}
