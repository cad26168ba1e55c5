package rediscore

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// extendAlone renews one exclusive lease by its key alone. It returns why, the error of the normal
// request, if the lease is not exclusive.
func (e *engine) extendAlone(ctx context.Context, req driver.ExtendRequest, why error) error {
	reply, err := e.store.EvalAbout(ctx, e.scripts.ExtendAlone, req.Name, "", string(req.LeaseID), form.MS(req.TTL), form.Token(req.Token))
	switch {
	case err != nil:
		return err
	case reply == int64(-7):
		return why
	}
	return parseExtend(reply)
}

// releaseAlone ends one lease by its key alone. Waiters find that out when the slot has moved. If
// there is no such lease, it returns why, the error of the normal request: there may be a place,
// which the server cannot remove while the slot moves.
func (e *engine) releaseAlone(ctx context.Context, req driver.ReleaseRequest, why error) error {
	if req.Cancel {
		// INVARIANT I5: first, because a copy of the acquire may be in flight.
		remember := Command{
			Words: []string{"SET"}, Keys: e.store.keys.Of([]keys.Kind{keys.Cancelled}, req.Name, req.LeaseID), Args: []string{"", "PX", form.MS(driver.TombstoneTTL)},
		}
		if _, err := e.store.Do(ctx, nil, remember); err != nil {
			return err
		}
	}
	history := ""
	if e.events != nil {
		history = e.store.keys.Key(keys.History, req.Name)
	}
	reply, err := e.store.EvalAbout(ctx, e.scripts.ReleaseAlone, req.Name, "",
		string(req.LeaseID), form.MS(max(req.KeepFor, 0)), form.Flag(req.Lost), history)
	switch {
	case err != nil:
		return err
	case reply == int64(1):
		return nil
	case reply == int64(0):
		return why
	}
	return form.Malformed("release", reply)
}
