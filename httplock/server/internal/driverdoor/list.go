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
	f := d.house.Features
	handleList(d, form.List, f.Lister != nil,
		func(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
			return f.Lister.List(ctx, prefix)
		},
		func(v *visit, l lockinfo.LockState) (string, form.Line) {
			return l.Name, form.Line{Lock: new(form.LockOf(l, v.show()))}
		})
	handleList(d, form.ListRecords, f.Recorder != nil,
		func(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
			return f.Recorder.ListRecords(ctx, prefix)
		},
		func(_ *visit, info driver.RecordInfo) (string, form.Line) { return info.Name, form.Line{Record: &info} })
}

// handleList adds a method that answers with a line for each element that the caller may
// read. A list changes nothing, so only its caller bounds its time.
func handleList[T any](
	d *desk, method string, can bool, list func(context.Context, string) iter.Seq2[T, error], line func(*visit, T) (name string, l form.Line),
) {
	d.handleStream(method, caller.Read, func(w http.ResponseWriter, r *door.Request) error {
		var req form.Prefix
		if err := r.Read(&req); err != nil {
			return err
		}
		r.BodyDone()
		if !can {
			return unsupported(method)
		}
		v := &visit{Request: r, desk: d, ctx: r.Context()}
		_, err := form.Check(&req, 0)
		if err := cmp.Or(err, v.need(caller.Read, req.Prefix), v.stillWanted()); err != nil {
			return err
		}
		leave, err := r.House.Limits.List(v.ctx, r.Caller)
		if err != nil {
			return err
		}
		defer leave()
		out := newLines(w, listLimit)
		var sent time.Time
		for one, err := range list(v.ctx, req.Prefix) {
			if err != nil {
				out.add(form.Line{Error: form.ErrorOf(r.Told(err))})
				out.sent()
				return nil
			}
			if name, l := line(v, one); r.Shows(caller.Read, name) {
				out.add(l)
			}
			if now := time.Now(); now.Sub(sent) >= linesEach || out.full() {
				sent = now
				if !out.sent() {
					return nil
				}
			}
		}
		out.add(form.Line{End: true})
		out.sent()
		return nil
	})
}
