// Package storedoor describes the store of the server to people: GET /v1/store.
//
// # How it is made
//
// All callers share the requests to the store: so a page that is open on many screens costs
// the store one round trip a second, and one diagnosis a minute.
package storedoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	tripEvery = time.Second
	tripLimit = 1500 * time.Millisecond // a store that takes longer does not answer

	diagnoseEvery = time.Minute
	diagnoseLimit = 30 * time.Second
	diagnosedTTL  = 30 * time.Second // the TTL of leases that the diagnosis assumes

	// patience is how long a request waits for the first diagnosis.
	patience = 2 * time.Second

	// nobodys is a free name. A look at it measures the round trip.
	nobodys = "holdfast/round-trip"
)

var errFault = errors.New("a fault of the server: its log has more")

// A desk has the handler.
type desk struct {
	house *door.House
	name  string // of the store
	trip  shared[time.Duration]
	check shared[driver.Diagnosis]
}

// Routes adds GET /v1/store. name is the name of the store; if it is empty, the store is named
// after its engine.
func Routes(mux *http.ServeMux, h *door.House, name string) {
	d := &desk{house: h, name: name}
	if name == "" {
		d.name, _, _ = strings.Cut(strings.TrimLeft(fmt.Sprintf("%T", h.Engine), "*"), ".")
	}
	d.trip = shared[time.Duration]{every: tripEvery, send: d.roundTrip, house: h, what: "round trip"}
	d.check = shared[driver.Diagnosis]{every: diagnoseEvery, send: d.diagnose, house: h, what: "diagnose"}
	mux.Handle("GET /v1/store", h.Handle(d.show))
}

// show answers GET /v1/store.
func (d *desk) show(w http.ResponseWriter, r *door.Request) error {
	if err := r.Need(caller.Read, ""); err != nil {
		return err
	}
	v := wire.Store{
		Store: d.name, Features: wire.FeaturesOf(d.house.Features.Capabilities), History: d.house.Features.Historian != nil,
	}
	ctx, cancel := ask.Limit(r.Context(), patience)
	defer cancel()
	d.tell(&v, d.trip.get(ctx, true, false))
	if d.house.Features.Diagnoser == nil {
		v.Undiagnosed = "the store cannot be diagnosed"
	} else {
		stops := r.NewWork() != nil
		d.judge(&v, d.check.get(ctx, v.Answers && !stops, true), stops)
	}
	return door.WriteLong(w, r, v)
}

// tell sets in v whether the store answers.
func (d *desk) tell(v *wire.Store, trip answer[time.Duration]) {
	switch {
	case !trip.known:
		v.Reason = ask.ErrNoAnswer.Error()
	case trip.err != nil:
		v.Reason = trip.err.Error()
	default:
		v.Answers, v.RoundTripMS = true, new(float64(trip.found.Microseconds())/1e3)
	}
	if trip.known {
		v.SinceMS = wire.Left(time.Since(trip.since))
	}
}

// judge sets the diagnosis in v. stops means that the server drains, and starts no diagnosis.
func (d *desk) judge(v *wire.Store, check answer[driver.Diagnosis], stops bool) {
	if !check.at.IsZero() {
		v.Diagnosis = new(wire.DiagnosisOf(check.found, d.name, diagnosedTTL))
		v.CheckedAgoMS = new(time.Since(check.at).Milliseconds())
	}
	switch {
	case check.err != nil:
		v.Undiagnosed = check.err.Error()
	case check.known:
	case !v.Answers:
		v.Undiagnosed = "the store does not answer"
	case stops:
		v.Undiagnosed = "the server is about to stop"
	default:
		v.Undiagnosed = "it is under way"
	}
}

// roundTrip looks at a name. Any reply will do.
func (d *desk) roundTrip(ctx context.Context) (time.Duration, error) {
	ctx, cancel := ask.Limit(ctx, tripLimit)
	defer cancel()
	sent := time.Now()
	_, err := d.house.Engine.Inspect(ctx, nobodys)
	if err = ask.Harmless(ctx, err); err != nil && (!driver.Definite(err) || errors.Is(err, driver.ErrUnavailable) || errors.Is(err, driver.ErrClosed)) {
		return 0, err
	}
	return time.Since(sent), nil
}

func (d *desk) diagnose(ctx context.Context) (driver.Diagnosis, error) {
	ctx, cancel := ask.Limit(ctx, diagnoseLimit)
	defer cancel()
	found, err := d.house.Features.Diagnoser.Diagnose(ctx, driver.DiagnoseRequest{TTL: diagnosedTTL})
	return found, ask.Harmless(ctx, err)
}
