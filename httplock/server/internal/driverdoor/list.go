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

// list streams the locks whose names begin with a prefix.
func (d *desk) list(w http.ResponseWriter, r *door.Request) error {
	lister := d.house.Features.Lister
	return listed(d, w, r, lister != nil, form.List, func(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
		return lister.List(ctx, prefix)
	}, func(v *visit, l lockinfo.LockState) (string, form.Line) {
		f := form.LockOf(l, v.show())
		return l.Name, form.Line{Lock: &f}
	})
}

// listRecords streams the descriptions of records.
func (d *desk) listRecords(w http.ResponseWriter, r *door.Request) error {
	recorder := d.house.Features.Recorder
	return listed(d, w, r, recorder != nil, form.ListRecords, func(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
		return recorder.ListRecords(ctx, prefix)
	}, func(_ *visit, info driver.RecordInfo) (string, form.Line) { return info.Name, form.Line{Record: &info} })
}

// listed answers with a line for each element that the caller may read. A list changes
// nothing, so only its caller bounds its time.
func listed[T any](
	d *desk, w http.ResponseWriter, r *door.Request, can bool, method string,
	list func(context.Context, string) iter.Seq2[T, error], line func(*visit, T) (name string, l form.Line),
) error {
	v, prefix, err := d.lists(r, can, method)
	if err != nil {
		return err
	}
	out := newListing(w)
	for one, err := range list(v.ctx, prefix) {
		name, l := line(v, one)
		if err == nil && !r.Shows(caller.Read, name) {
			continue
		}
		if !out.add(l, r.Told(err)) {
			return nil
		}
	}
	out.end()
	return nil
}

// lists reads the request for a list.
func (d *desk) lists(r *door.Request, can bool, method string) (*visit, string, error) {
	if !r.HasOne(caller.Read) {
		return nil, "", lacks(caller.Read)
	}
	var req form.Prefix
	if err := r.Read(&req); err != nil {
		return nil, "", err
	}
	r.BodyDone()
	if !can {
		return nil, "", unsupported(method)
	}
	v := &visit{Request: r, desk: d, ctx: r.Context()}
	_, err := form.Check(&req, 0)
	return v, req.Prefix, cmp.Or(err, v.need(caller.Read, req.Prefix), v.stillWanted())
}

const (
	// linesEach is how often lines are flushed.
	linesEach = 50 * time.Millisecond

	// listLimit is how long a client may take for one part of a list.
	listLimit = 5 * time.Minute
)

// A listing is the answer of a list.
type listing struct {
	*lines
	flushed time.Time
}

func newListing(w http.ResponseWriter) *listing {
	return &listing{lines: newLines(w, listLimit)}
}

// add adds a line, or the error that ends the list. It reports whether to go on.
func (l *listing) add(line form.Line, err error) bool {
	if err != nil {
		l.write(form.Line{Error: form.ErrorOf(err)})
		l.sent()
		return false
	}
	l.write(line)
	if l.flushed.IsZero() {
		l.flushed = time.Now()
		return l.sent()
	}
	if now := time.Now(); now.Sub(l.flushed) >= linesEach {
		l.flushed = now
		return l.sent()
	}
	return l.err == nil
}

// end marks the list as whole.
func (l *listing) end() { l.write(form.Line{End: true}) }
