package lookdoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/view"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	// lookBody is the longest body with names: the most names, with each byte written as an
	// escape.
	lookBody = driver.MaxBatch*(6*driver.MaxNameLen+4) + 1024
)

// A looked is the result of the look at one name.
type looked struct {
	lock view.Lock
	err  error
}

// look answers POST /v1/locks/look.
func (d *desk) look(ctx context.Context, w http.ResponseWriter, r *door.Request) error {
	names, err := lookedFor(r)
	if err != nil {
		return err
	}
	looks, _, err := door.Split(ctx, r, names, func(name string) string { return name },
		func(ctx context.Context, names []string) []looked { return d.lookAll(ctx, r, names) },
		func(err error) looked { return looked{err: ask.Harmless(ctx, err)} })
	if err != nil {
		return err
	}
	v := wire.Looked{Locks: []wire.LockDetails{}, Failed: []wire.LookFailure{}}
	answered := false // the store has answered for at least one name
	for i, look := range looks {
		if look.err == nil {
			v.Locks = append(v.Locks, look.lock.Details())
			continue
		}
		p := r.Problem(look.err)
		answered = answered || p.Status < http.StatusInternalServerError
		v.Failed = append(v.Failed, wire.LookFailure{Name: names[i], Status: p.Status, Code: p.Code, Detail: p.Detail})
	}
	if len(v.Locks) == 0 && !answered {
		return looks[0].err
	}
	return door.WriteLong(w, r, v)
}

// lookedFor returns the names in a request, or a refusal if the caller may not see one of them.
func lookedFor(r *door.Request) ([]string, error) {
	var want wire.LookRequest
	if err := r.ReadUpTo(&want, lookBody); err != nil {
		return nil, err
	}
	if n := len(want.Names); n == 0 || n > driver.MaxBatch {
		return nil, door.Invalid(fmt.Sprintf("names: there are %d, want 1 to %d", n, driver.MaxBatch))
	}
	for i, name := range want.Names {
		if err := driver.CheckName(name); err != nil {
			return nil, door.Invalid(fmt.Sprintf("names[%d]: %v", i, err))
		}
		if err := r.Need(caller.Read, name); err != nil {
			return nil, err
		}
	}
	return want.Names, nil
}

// lookAll looks at names of one part of the store. After one look has found that part
// unavailable, it sends no more.
func (d *desk) lookAll(ctx context.Context, r *door.Request, names []string) []looked {
	looks := make([]looked, len(names))
	var away atomic.Pointer[error]
	fault := r.Some(len(names), door.AtOnce, func(i int) {
		if err := away.Load(); err != nil {
			looks[i].err = *err
			return
		}
		look := &looks[i]
		look.lock, look.err = view.Look(ctx, d.house.Client, names[i])
		if errors.Is(look.err, driver.ErrUnavailable) {
			away.Store(&look.err)
		}
	})
	if fault != nil {
		for i := range looks {
			looks[i].err = fault
		}
	}
	return looks
}
