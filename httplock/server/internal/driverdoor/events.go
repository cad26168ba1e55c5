package driverdoor

import (
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// mostEvents is how many events may wait for a stream to be written. Of more than that
// a gap is told.
const mostEvents = 1024

// events is the stream of what happens to the names that the caller may read.
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
	waiting := make(chan driver.Event, mostEvents)
	missed := make(chan struct{}, 1)
	stop := historian.OnEvent(func(e driver.Event) {
		if e.Kind != driver.EventGap && !r.Shows(caller.Read, e.Name) {
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
			out.write(form.EventOf(e))
		case <-missed:
			out.write(form.EventOf(driver.Event{}))
		case <-ping.C:
			out.write(form.Event{Ping: true})
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
