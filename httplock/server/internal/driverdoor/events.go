package driverdoor

import (
	"net/http"
	"sync"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// mostEvents is how many events a stream queues. More become a gap.
const mostEvents = 1024

// events streams the events of the names that the caller may read.
func (d *desk) events(w http.ResponseWriter, r *door.Request) error {
	historian := d.house.Features.Historian
	if historian == nil {
		return unsupported("OnEvent")
	}
	leave, err := mayFollow(r)
	if err != nil {
		return err
	}
	defer leave()
	var mu sync.Mutex
	var waiting []any
	wake := make(chan struct{}, 1)
	stop := historian.OnEvent(func(e lockinfo.HistoryEvent) {
		if e.Kind != lockinfo.HistoryGap && !r.Shows(caller.Read, e.Name) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case len(waiting) < mostEvents:
			waiting = append(waiting, e)
		case len(waiting) == mostEvents:
			waiting = append(waiting, lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
		}
		door.Replace(wake, struct{}{})
	})
	defer stop()
	take := func() (all []any) {
		mu.Lock()
		defer mu.Unlock()
		all, waiting = waiting, nil
		return all
	}
	d.follow(newLines(w, lineLimit), r, wake, take, form.EventLine{Ping: true}, nil)
	return nil
}
