package driverdoor

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	// linesEach is how often lines are flushed.
	linesEach = 50 * time.Millisecond

	// listLimit is how long a client may take for one part of a list.
	listLimit = 5 * time.Minute
)

// lists adds the methods that list locks and records.
func (d *desk) lists() {
	var locks func(context.Context, string) iter.Seq2[lockinfo.LockState, error]
	var records func(context.Context, string) iter.Seq2[driver.RecordInfo, error]
	if lister := d.house.Features.Lister; lister != nil {
		locks = lister.List
	}
	if recorder := d.house.Features.Recorder; recorder != nil {
		records = recorder.ListRecords
	}
	handleList(d, form.List, locks, func(v *visit, l lockinfo.LockState) (string, form.Line) {
		return l.Name, form.Line{Lock: new(form.LockOf(l, v.show()))}
	})
	handleList(d, form.ListRecords, records, func(_ *visit, info driver.RecordInfo) (string, form.Line) {
		return info.Name, form.Line{Record: &info}
	})
}

// handleList adds a method that answers with a line for each element that the caller may
// read. A list changes nothing, so only its caller bounds its time.
func handleList[T any](d *desk, method string, list func(context.Context, string) iter.Seq2[T, error], line func(*visit, T) (name string, l form.Line)) {
	d.handleStream(method, func(w http.ResponseWriter, r *door.Request) error {
		if !r.HasOne(caller.Read) {
			return lacks(caller.Read)
		}
		var req form.Prefix
		if err := r.Read(&req); err != nil {
			return err
		}
		r.BodyDone()
		if list == nil {
			return unsupported(method)
		}
		v := &visit{Request: r, desk: d, ctx: r.Context()}
		_, err := form.Check(&req, 0)
		if err := cmp.Or(err, v.need(caller.Read, req.Prefix), v.stillWanted()); err != nil {
			return err
		}
		out := newLines(w, listLimit)
		var flushed time.Time
		for one, err := range list(v.ctx, req.Prefix) {
			if err != nil {
				out.write(form.Line{Error: form.ErrorOf(r.Told(err))})
				return nil
			}
			if name, l := line(v, one); r.Shows(caller.Read, name) {
				out.write(l)
			}
			if now := time.Now(); now.Sub(flushed) >= linesEach {
				flushed = now
				out.sent()
			}
			if out.err != nil {
				return nil
			}
		}
		out.write(form.Line{End: true})
		return nil
	})
}
