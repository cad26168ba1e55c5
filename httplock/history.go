package httplock

import (
	"context"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
)

// History implements driver.Historian.
func (e *Engine) History(ctx context.Context, name string) ([]driver.Event, error) {
	f, err := optional[form.Past](ctx, e, e.capable.History, form.History, form.Name{Name: name})
	var all []driver.Event
	for _, event := range f.Events {
		all = append(all, event.Driver())
	}
	return all, err
}

// OnEvent implements driver.Historian. Each listener has a stream of its own, from now
// until stop.
func (e *Engine) OnEvent(told func(driver.Event)) (stop func()) {
	if !e.capable.History || e.life.Err() != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(e.life)
	var mu sync.Mutex // so that nothing is told after stop
	tell := func(event driver.Event) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			told(event)
		}
	}
	e.wg.Go(func() {
		reopen(ctx, func() error {
			defer func() { tell(driver.Event{Kind: driver.EventGap}) }()
			return follow(ctx, e, e.chosen(), form.Events, func(line *form.Event) {
				if !line.Ping {
					tell(line.Driver())
				}
			})
		})
	})
	return cancel
}
