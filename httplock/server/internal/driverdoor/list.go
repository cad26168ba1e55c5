package driverdoor

import (
	"cmp"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// list streams the locks whose names begin with a prefix.
func (d *desk) list(w http.ResponseWriter, r *door.Request) error {
	v, prefix, err := d.lists(r, d.house.Features.Lister != nil, "List")
	if err != nil {
		return err
	}
	out := newListing(w)
	for l, err := range d.house.Features.Lister.List(v.ctx, prefix) {
		if err == nil && !r.Shows(caller.Read, l.Name) {
			continue
		}
		f := form.LockOf(l, v.show())
		if !out.add(form.Line{Lock: &f}, err) {
			return nil
		}
	}
	out.end()
	return nil
}

// listRecords streams what there is to tell of records.
func (d *desk) listRecords(w http.ResponseWriter, r *door.Request) error {
	v, prefix, err := d.lists(r, d.house.Features.RecordLister != nil, "ListRecords")
	if err != nil {
		return err
	}
	out := newListing(w)
	for l, err := range d.house.Features.RecordLister.ListRecords(v.ctx, prefix) {
		if err == nil && !r.Shows(caller.Read, l.Name) {
			continue
		}
		f := form.RecordInfoOf(l)
		if !out.add(form.Line{Record: &f}, err) {
			return nil
		}
	}
	out.end()
	return nil
}

// lists reads the request for a list. It changes nothing, so its time is bounded by its
// caller only.
func (d *desk) lists(r *door.Request, can bool, method string) (*visit, string, error) {
	var f form.Prefix
	if err := r.Read(&f); err != nil {
		return nil, "", err
	}
	v := &visit{Request: r, desk: d, ctx: r.Context()}
	if !can {
		return nil, "", unsupported(method)
	}
	if err := cmp.Or(f.Check(), v.need(caller.Read, f.Prefix), v.stillWanted()); err != nil {
		return nil, "", err
	}
	return v, f.Prefix, nil
}

const (
	// linesEach is how long a line may wait for others to go with it.
	linesEach = 50 * time.Millisecond

	// listLimit is how long somebody may look at one page of a list.
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

// add adds one, or the error that ends the list. It reports whether to go on.
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

// end says that the list is whole.
func (l *listing) end() { l.write(form.Line{End: true}) }
