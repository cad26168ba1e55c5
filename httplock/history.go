package httplock

import (
	"context"
	"sync"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// History implements driver.Historian.
func (e *engine) History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error) {
	f, err := optional[form.Past](ctx, e, e.capable.History, form.History, form.Name{Name: name})
	return f.Events, err
}

// OnEvent implements driver.Historian. Each listener has a stream of its own, from now
// until stop.
func (e *engine) OnEvent(listener func(lockinfo.HistoryEvent)) (stop func()) {
	if !e.capable.History || e.life.Err() != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(e.life)
	var mu sync.Mutex // no call of listener begins after stop
	tell := func(event lockinfo.HistoryEvent) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			listener(event)
		}
	}
	e.wg.Go(func() {
		reopen(ctx, func() error {
			defer func() { tell(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap}) }()
			return follow(ctx, e, e.chosen(), form.Events, func(line *form.EventLine) {
				if !line.Ping {
					tell(line.HistoryEvent)
				}
			})
		})
	})
	return cancel
}
