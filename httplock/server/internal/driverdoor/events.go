package driverdoor

import (
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// mostEvents is how many events a stream queues. More become a gap.
const mostEvents = 1024

// events streams the events of the names that the caller may read.
func (d *desk) events(w http.ResponseWriter, r *door.Request) error {
	if !r.Caller.Rights.Has(caller.Read) {
		return door.Forbidden(caller.Read, "")
	}
	historian := d.house.Features.Historian
	if historian == nil {
		return unsupported("OnEvent")
	}
	leave, err := mayFollow(r)
	if err != nil {
		return err
	}
	defer leave()
	waiting := make(chan lockinfo.HistoryEvent, mostEvents)
	missed := make(chan struct{}, 1)
	stop := historian.OnEvent(func(e lockinfo.HistoryEvent) {
		if e.Kind != lockinfo.HistoryGap && !r.Shows(caller.Read, e.Name) {
			return
		}
		select {
		case waiting <- e:
		default:
			select {
			case missed <- struct{}{}:
			default:
			}
		}
	})
	defer stop()
	out := newLines(w, lineLimit)
	ping := time.NewTicker(pingEach)
	defer ping.Stop()
	for out.sent() {
		select {
		case e := <-waiting:
			out.write(form.Event(e))
		case <-missed:
			out.write(form.Event{Kind: lockinfo.HistoryGap})
		case <-ping.C:
			if r.Revoked() {
				return nil
			}
			out.write(form.EventLine{Ping: true})
		case <-d.house.Draining:
			return nil
		case <-d.closed:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
	return nil
}
