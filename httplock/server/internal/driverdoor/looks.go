package driverdoor

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// looks adds what people ask of locks.
func (d *desk) looks(mux *http.ServeMux) {
	handle(d, mux, form.Capable, capable)
	handle(d, mux, form.Inspect, inspect)
	handle(d, mux, form.Break, breakLock)
	handle(d, mux, form.Breaks, breaks)
	handle(d, mux, form.Diagnose, diagnose)
	handle(d, mux, form.History, history)
	mux.Handle("POST "+form.Base+form.List, d.house.Handle(d.list))
	mux.Handle("POST "+form.Base+form.ListRecords, d.house.Handle(d.listRecords))
}

func capable(v *visit, _ *form.Nothing) (form.Capabilities, error) {
	f := v.House.Features
	return form.CapabilitiesOf(f.Capabilities, f.Vault != nil && f.Vault.SelfPruning()), nil
}

func inspect(v *visit, f *form.Name) (form.Lock, error) {
	if err := cmp.Or(f.Check(), v.need(caller.Read, f.Name), v.stillWanted()); err != nil {
		return form.Lock{}, err
	}
	lock, err := v.House.Engine.Inspect(v.ctx, f.Name)
	return form.LockOf(lock, v.show()), err
}

func breakLock(v *visit, f *form.BreakRequest) (form.Records, error) {
	breaker := v.House.Features.Breaker
	if breaker == nil {
		return form.Records{}, unsupported("Break")
	}
	if err := cmp.Or(f.Check(), v.need(caller.Break, f.Name), v.granting()); err != nil {
		return form.Records{}, err
	}
	all, err := breaker.Break(v.ctx, driver.BreakRequest{
		ID: f.ID, Name: f.Name, Token: f.Token, Older: f.Older, Closed: f.Closed, Author: f.Author, Reason: f.Reason,
	})
	v.Audit("break", slog.String("name", f.Name), slog.Uint64("fencing_token", f.Token), slog.String("author", f.Author),
		slog.String("reason", f.Reason), slog.Int("broken", len(all)), slog.Bool("failed", err != nil))
	return form.RecordsOf(all, v.show()), err
}

func breaks(v *visit, f *form.Name) (form.Records, error) {
	breaker := v.House.Features.Breaker
	if breaker == nil {
		return form.Records{}, unsupported("Breaks")
	}
	if err := cmp.Or(f.Check(), v.need(caller.Read, f.Name), v.stillWanted()); err != nil {
		return form.Records{}, err
	}
	all, err := breaker.Breaks(v.ctx, f.Name)
	return form.RecordsOf(all, v.show()), err
}

func diagnose(v *visit, f *form.DiagnoseRequest) (form.Diagnosis, error) {
	if err := cmp.Or(f.Check(), v.need(caller.Admin, ""), v.stillWanted()); err != nil {
		return form.Diagnosis{}, err
	}
	to := v.House.Features.Diagnoser
	if to == nil {
		return form.Diagnosis{}, unsupported("Diagnose")
	}
	found, err := to.Diagnose(v.ctx, driver.DiagnoseRequest{TTL: f.TTL.Duration()})
	return form.DiagnosisOf(found), err
}

func history(v *visit, f *form.Name) (form.Past, error) {
	historian := v.House.Features.Historian
	if historian == nil {
		return form.Past{}, unsupported("History")
	}
	if err := cmp.Or(f.Check(), v.need(caller.Read, f.Name), v.stillWanted()); err != nil {
		return form.Past{}, err
	}
	events, err := historian.History(v.ctx, f.Name)
	past := form.Past{Events: make([]form.Event, len(events))}
	for i, e := range events {
		past.Events[i] = form.EventOf(e)
	}
	return past, err
}
