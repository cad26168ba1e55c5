package driverdoor

import (
	"cmp"
	"log/slog"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// looks adds the methods about locks that are held, and about the store.
func (d *desk) looks() {
	f := d.house.Features
	handle(d, form.Capable, 0, true, func(*visit, *form.Nothing) (form.Capabilities, error) {
		capable := f.Capabilities
		capable.Callers = true // the server fills them in
		return form.Capabilities{Capabilities: capable, SelfPruning: f.Vault != nil && f.Vault.SelfPruning()}, nil
	})
	handleNamed(d, form.Inspect, caller.Read, true, func(v *visit, req *form.Name) (form.Lock, error) {
		lock, err := d.house.Engine.Inspect(v.ctx, req.Name)
		return form.LockOf(lock, v.show()), err
	})
	handleNamed(d, form.Break, caller.Break, f.Breaker != nil, breakLock)
	handleNamed(d, form.Breaks, caller.Read, f.Breaker != nil, func(v *visit, req *form.Name) (form.Records, error) {
		all, err := f.Breaker.Breaks(v.ctx, req.Name)
		return form.RecordsOf(all, v.show()), err
	})
	handleNamed(d, form.Diagnose, caller.Admin, f.Diagnoser != nil, func(v *visit, req *driver.DiagnoseRequest) (form.Diagnosis, error) {
		found, err := f.Diagnoser.Diagnose(v.ctx, *req)
		return form.DiagnosisOf(found), err
	})
	handleNamed(d, form.History, caller.Read, f.Historian != nil, func(v *visit, req *form.Name) (past form.Past, err error) {
		past.Events, err = f.Historian.History(v.ctx, req.Name)
		return past, err
	})
	d.lists()
}

func breakLock(v *visit, req *driver.BreakRequest) (form.Records, error) {
	says := req.Author
	req.Author = cmp.Or(v.Found(), req.Author)
	all, err := v.House.Features.Breaker.Break(v.ctx, *req)
	v.Audit("break", slog.String("name", req.Name), slog.Uint64("fencing_token", req.Token), slog.String("says", says),
		slog.String("reason", req.Reason), slog.Int("broken", len(all)), slog.Bool("failed", err != nil))
	return form.RecordsOf(all, v.show()), err
}
