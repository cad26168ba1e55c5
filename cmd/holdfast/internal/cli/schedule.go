package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/view"
)

// scheduleStatus tells how a schedule stands; its exit status says whether anybody sees
// to it.
func (a *app) scheduleStatus(ctx context.Context, c *holdfast.Client, e holdfast.OnceEntry) error {
	s, err := c.EveryStatus(ctx, e.Key)
	if err != nil {
		return err
	}
	v, status := view.Once(e), exit.OK
	v.Schedule = view.Status(e.Key, s)
	if !s.Led {
		status = exit.Not
	}
	return a.answerWith(status, v, render.Plain(e.Key)+" is a schedule\n"+render.Schedule(s))
}

// schedulesOf returns the schedules that are led by one of some locks, and puts them into
// the views of those.
func schedulesOf(ctx context.Context, c *holdfast.Client, locks []driver.Lock, views []wire.Lock) (found []holdfast.OnceEntry, err error) {
	for i, lock := range locks {
		name, ok := strings.CutSuffix(lock.Name, holdfast.ScheduleSuffix)
		if !ok || name == "" {
			continue
		}
		e, err := c.OnceEntry(ctx, name)
		switch {
		case errors.Is(err, holdfast.ErrUnsupported):
			return nil, nil
		case err != nil:
			return nil, err
		case e.State == holdfast.OnceScheduled:
			found = append(found, e)
			views[i].Schedule = view.Entry(e)
		}
	}
	return found, nil
}
