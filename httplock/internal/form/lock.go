package form

import (
	"github.com/holdfast-locks/holdfast/driver"
)

// A Lock is the reply to Inspect, and a line of List.
type Lock struct {
	Name        string      `json:"name"`
	Mode        driver.Mode `json:"mode,omitzero"`
	Limit       int         `json:"limit,omitempty"`
	Holders     []Holding   `json:"holders,omitempty"`
	Queue       []Waiting   `json:"queue,omitempty"`
	QueueLength int         `json:"queue_length,omitempty"`
	LastToken   uint64      `json:"last_token,omitempty"`
}

// A Holding is one lease of a Lock.
type Holding struct {
	LeaseID   driver.LeaseID `json:"lease_id,omitempty"` // hidden from most callers
	Token     uint64         `json:"token,omitempty"`
	Permits   int            `json:"permits,omitempty"`
	Holder    driver.Holder  `json:"holder,omitzero"`
	Since     Span           `json:"since_us,omitempty"`
	ExpiresIn Span           `json:"expires_in_us,omitempty"`
	Released  bool           `json:"released,omitempty"`
}

// A Waiting is one place in the queue of a Lock.
type Waiting struct {
	LeaseID   driver.LeaseID `json:"lease_id,omitempty"` // hidden from most callers
	Mode      driver.Mode    `json:"mode,omitzero"`
	Permits   int            `json:"permits,omitempty"`
	Holder    driver.Holder  `json:"holder,omitzero"`
	Since     Span           `json:"since_us,omitempty"`
	ExpiresIn Span           `json:"expires_in_us,omitempty"`
}

// A Shown is how a caller is shown the lease ID of another.
type Shown func(driver.LeaseID) driver.LeaseID

// Whole shows lease IDs as they are.
func Whole(id driver.LeaseID) driver.LeaseID { return id }

// Hidden shows what nobody can release a lease by. A client that is not holdfast has no
// lease ID, and none is shown.
func Hidden(id driver.LeaseID) driver.LeaseID {
	if id == "" {
		return ""
	}
	return id.Hidden()
}

// LockOf returns the form of a lock.
func LockOf(l driver.Lock, show Shown) Lock {
	f := Lock{Name: l.Name, Mode: l.Mode, Limit: l.Limit, QueueLength: l.QueueLength, LastToken: l.LastToken}
	for _, h := range l.Holders {
		f.Holders = append(f.Holders, Holding{
			LeaseID: show(h.LeaseID), Token: h.Token, Permits: h.Permits, Holder: h.Holder,
			Since: SpanOf(h.Since), ExpiresIn: SpanOf(h.ExpiresIn), Released: h.Released,
		})
	}
	for _, w := range l.Queue {
		f.Queue = append(f.Queue, Waiting{
			LeaseID: show(w.LeaseID), Mode: w.Mode, Permits: w.Permits, Holder: w.Holder,
			Since: SpanOf(w.Since), ExpiresIn: SpanOf(w.ExpiresIn),
		})
	}
	return f
}

// Driver returns what the form is of.
func (l Lock) Driver() driver.Lock {
	lock := driver.Lock{Name: l.Name, Mode: l.Mode, Limit: l.Limit, QueueLength: l.QueueLength, LastToken: l.LastToken}
	for _, h := range l.Holders {
		lock.Holders = append(lock.Holders, driver.Holding{
			LeaseID: h.LeaseID, Token: h.Token, Permits: h.Permits, Holder: h.Holder,
			Since: h.Since.Duration(), ExpiresIn: h.ExpiresIn.Duration(), Released: h.Released,
		})
	}
	for _, w := range l.Queue {
		lock.Queue = append(lock.Queue, driver.Waiting{
			LeaseID: w.LeaseID, Mode: w.Mode, Permits: w.Permits, Holder: w.Holder,
			Since: w.Since.Duration(), ExpiresIn: w.ExpiresIn.Duration(),
		})
	}
	return lock
}

// A BreakRequest is the request of Break.
type BreakRequest struct {
	ID     driver.LeaseID `json:"id"`
	Name   string         `json:"name"`
	Token  uint64         `json:"token"`
	Older  bool           `json:"older,omitempty"`
	Closed bool           `json:"closed,omitempty"`
	Author string         `json:"author"`
	Reason string         `json:"reason,omitempty"`
}

// Records are the reply to Break and Breaks.
type Records struct {
	Broken []Broken `json:"broken"`
}

// A Broken is the record of one lease that was broken.
type Broken struct {
	ID      driver.LeaseID `json:"id,omitempty"`       // hidden from most callers
	LeaseID driver.LeaseID `json:"lease_id,omitempty"` // likewise
	Token   uint64         `json:"token"`
	Permits int            `json:"permits,omitempty"`
	Holder  driver.Holder  `json:"holder,omitzero"`
	Author  string         `json:"author"`
	Reason  string         `json:"reason,omitempty"`
	Ago     Span           `json:"ago_us"`
}

// RecordsOf returns the form of records.
func RecordsOf(all []driver.Broken, show Shown) Records {
	r := Records{Broken: make([]Broken, len(all))}
	for i, b := range all {
		r.Broken[i] = Broken{
			ID: show(b.ID), LeaseID: show(b.LeaseID), Token: b.Token, Permits: b.Permits, Holder: b.Holder,
			Author: b.Author, Reason: b.Reason, Ago: SpanOf(b.Ago),
		}
	}
	return r
}

// Driver returns what the form is of.
func (r Records) Driver() []driver.Broken {
	var all []driver.Broken
	for _, b := range r.Broken {
		all = append(all, driver.Broken{
			ID: b.ID, LeaseID: b.LeaseID, Token: b.Token, Permits: b.Permits, Holder: b.Holder,
			Author: b.Author, Reason: b.Reason, Ago: b.Ago.Duration(),
		})
	}
	return all
}
