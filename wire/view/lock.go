package view

import (
	"context"
	"errors"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/wire"
)

// A Lock is all that there is to show of one name.
type Lock struct {
	holdfast.Lock
	Broken   []holdfast.Broken     // the latest last; none if the store cannot break locks
	Once     holdfast.OnceEntry    // if there was do-once work, or the name is a schedule
	Schedule *holdfast.EveryStatus // if it is
}

// Look asks the store for all that there is to show of a name.
func Look(ctx context.Context, c *holdfast.Client, name string) (l Lock, err error) {
	if l.Lock, err = c.Inspect(ctx, name); err != nil {
		return l, err
	}
	if l.Broken, err = c.Breaks(ctx, name); err != nil && !errors.Is(err, holdfast.ErrUnsupported) {
		return l, err
	}
	if l.Once, err = onceOf(ctx, c, l.Lock); err != nil || l.Once.State != holdfast.OnceScheduled {
		return l, err
	}
	s, err := c.EveryStatus(ctx, name)
	l.Schedule = &s
	return l, err
}

// onceOf returns what has become of the do-once work under the name of a lock, or
// nothing if there was none or the store keeps no results. A lock that is held for
// other things is not in progress.
func onceOf(ctx context.Context, c *holdfast.Client, lock holdfast.Lock) (holdfast.OnceEntry, error) {
	e, err := c.OnceEntryOf(ctx, lock)
	switch {
	case errors.Is(err, holdfast.ErrUnsupported):
		return holdfast.OnceEntry{}, nil
	case err == nil && e.State == holdfast.OnceInProgress && !e.Holder.Once:
		return holdfast.OnceEntry{}, nil
	}
	return e, err
}

// Details returns what programs are told of it.
func (l Lock) Details() wire.LockDetails {
	v := wire.LockDetailsOf(l.Lock, l.Broken)
	switch {
	case l.Schedule != nil:
		v.Schedule = Status(l.Name, *l.Schedule)
	case l.Once.State != holdfast.OnceAbsent:
		once := Once(l.Once)
		v.Once = &once
	}
	return v
}
