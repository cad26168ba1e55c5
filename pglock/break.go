package pglock

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A broken is one row of the table of that name.
type broken struct {
	row
	BreakID lockinfo.LeaseID `json:"break_id"`
	Author  string           `json:"author"`
	Reason  string           `json:"reason"`
	Ago     int64            `json:"ago"`
}

func (b *broken) describe() lockinfo.Broken {
	return lockinfo.Broken{
		ID: b.BreakID, LeaseID: b.LeaseID, Token: b.Token, Mode: b.mode(), Holder: holders.Read(b.Holder),
		Author: b.Author, Reason: b.Reason, Ago: max(duration(b.Ago), 0),
	}
}

// Break implements driver.Breaker.
func (e *engine) Break(ctx context.Context, req driver.BreakRequest) (ended []lockinfo.Broken, err error) {
	var rows []broken
	err = e.change(ctx, ending, "break", []any{
		req.Name, string(req.ID), int64(req.Token), req.Older, req.Closed, req.Author, req.Reason, e.opts.History,
	}, inJSON(&rows))
	if err != nil {
		return nil, err
	}
	var seqs []string
	for _, b := range rows {
		seqs = append(seqs, strconv.FormatInt(b.Seq, 10))
		ended = append(ended, b.describe())
	}
	for some := range slices.Chunk(seqs, 256) { // a payload has room for some hundred
		e.post([]message{{e.channel(breaks), e.inbox + " " + strings.Join(some, " ")}})
	}
	e.tellLosses(rows)
	return ended, nil
}

// Breaks implements driver.Breaker.
func (e *engine) Breaks(ctx context.Context, name string) (all []lockinfo.Broken, err error) {
	var rows []broken
	err = e.call(ctx, waiting, "breaks", []any{name, ""}, inJSON(&rows))
	for _, b := range rows {
		if duration(b.Ago) < driver.BreakMemory {
			all = append(all, b.describe())
		}
	}
	return all, err
}

// OnLoss implements driver.LossTeller.
func (e *engine) OnLoss(listener func(driver.Loss)) (stop func()) { return e.losses.OnLoss(listener) }

func (e *engine) tellLosses(rows []broken) {
	for _, b := range rows {
		e.losses.Tell(driver.Loss{Name: b.Name, LeaseID: b.LeaseID, Err: b.describe().Err()})
	}
}

// readBroken reports the broken leases that match a condition, and returns the greatest number
// among them. If it cannot read them, renewals find the losses.
func (e *engine) readBroken(ctx context.Context, condition string, args ...any) (last int64, err error) {
	var rows []broken
	err = e.query(ctx, renewing, "SELECT seq, name, lease_id, author, reason FROM "+e.name+".broken WHERE "+condition, args, func(r pgx.Rows) error {
		var b broken
		err := r.Scan(&b.Seq, &b.Name, &b.LeaseID, &b.Author, &b.Reason)
		rows = append(rows, b)
		last = max(last, b.Seq)
		return err
	})
	e.tellLosses(rows)
	return last, err
}
