package view

import (
	"context"
	"errors"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/wire"
)

// A Lock is all that the store knows of one name.
type Lock struct {
	holdfast.LockState
	Broken   []holdfast.Broken       // the latest last; none if the store cannot break locks
	Once     holdfast.OnceRecord     // if there was do-once work, or the name is a schedule
	Schedule *holdfast.ScheduleState // nil unless the name is a schedule
}

// Look reads all that the store knows of a name.
func Look(ctx context.Context, c *holdfast.Client, name string) (l Lock, err error) {
	if l.LockState, err = c.Inspect(ctx, name); err != nil {
		return l, err
	}
	if l.Broken, err = c.Records().Breaks(ctx, name); err != nil && !errors.Is(err, holdfast.ErrUnsupported) {
		return l, err
	}
	if l.Once, err = onceOf(ctx, c, l.LockState); err != nil || l.Once.State != holdfast.OnceScheduled {
		return l, err
	}
	s, err := c.Records().Schedule(ctx, name)
	l.Schedule = &s
	return l, err
}

// onceOf returns the state of the do-once work under the name of a lock. It returns zero if there
// was none, or the store keeps no results. A lock that is held for other work does not count as
// in progress.
func onceOf(ctx context.Context, c *holdfast.Client, lock holdfast.LockState) (holdfast.OnceRecord, error) {
	e, err := c.Records().Of(ctx, lock)
	switch {
	case errors.Is(err, holdfast.ErrUnsupported):
		return holdfast.OnceRecord{}, nil
	case err == nil && e.State == holdfast.OnceInProgress && !e.Holder.Once:
		return holdfast.OnceRecord{}, nil
	}
	return e, err
}

// Details returns the lock for JSON.
func (l Lock) Details() wire.LockDetails {
	v := wire.LockDetailsOf(l.LockState, l.Broken)
	switch {
	case l.Schedule != nil:
		v.Schedule = Status(l.Name, *l.Schedule)
	case l.Once.State != holdfast.OnceAbsent:
		v.Once = new(Once(l.Once))
	}
	return v
}
