package lookdoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// list answers GET /v1/locks.
func (d *desk) list(w http.ResponseWriter, r *door.Request) error {
	if r.URL.Query().Has("since") {
		if !door.WantsLines(r) {
			return door.Invalid("since: only lines of JSON have changes: want Accept: application/x-ndjson")
		}
		if answered, err := d.changes(w, r); answered {
			return err
		}
	}
	return door.List(w, r, caller.Read, d.house.Client.List, func(l lockinfo.LockState) string { return l.Name }, wire.LockOf,
		func(locks []wire.Lock, next string) any { return wire.Locks{Locks: locks, NextCursor: next} })
}

// history answers GET /v1/locks/{name}/history.
func (d *desk) history(ctx context.Context, w http.ResponseWriter, r *door.Request, name string) error {
	events, err := d.house.Client.History(ctx, name)
	switch {
	case errors.Is(err, driver.ErrUnsupported):
		return fmt.Errorf("%w: start the server with history=1 in the URL of its store, if that store can keep history", err)
	case err != nil:
		return err
	}
	return door.WriteLong(w, r, wire.HistoryOf(name, events))
}
