package driverdoor

import (
	"net/http"

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
	out := newBacklog()
	stop := historian.OnEvent(func(e lockinfo.HistoryEvent) {
		if e.Kind == lockinfo.HistoryGap || r.Shows(caller.Read, e.Name) {
			out.add(e, mostEvents, lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
		}
	})
	defer stop()
	d.follow(newLines(w, lineLimit), r, out, form.EventLine{Ping: true}, nil)
	return nil
}
