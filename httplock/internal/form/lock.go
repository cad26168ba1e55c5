package form

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Some types of package lockinfo leave lease IDs out of their JSON. The types of this file
// have the same fields, so that values convert, and JSON tags for all of them.

// A Lock is the reply to Inspect. State computes its mode from the holders.
type Lock struct {
	Name        string    `json:"name"`
	Holders     []Holding `json:"holders,omitempty"`
	Queue       []Place   `json:"queue,omitempty"`
	QueueLength int       `json:"queue_length,omitzero"`
	LastToken   uint64    `json:"last_token,omitzero"`
}

// A Holding is a lockinfo.Holding.
type Holding struct {
	LeaseID   lockinfo.LeaseID `json:"lease_id,omitzero"` // hidden from most callers
	Token     uint64           `json:"token,omitzero"`
	Mode      lockinfo.Mode    `json:"mode,omitzero"`
	Holder    lockinfo.Holder  `json:"holder,omitzero"`
	Since     time.Duration    `json:"since_ns,omitzero"`
	ExpiresIn time.Duration    `json:"expires_in_ns,omitzero"`
	Released  bool             `json:"released,omitzero"`
	TTL       time.Duration    `json:"ttl_ns,omitzero"`
}

// A Place is a lockinfo.Place.
type Place struct {
	LeaseID   lockinfo.LeaseID `json:"lease_id,omitzero"` // hidden from most callers
	Mode      lockinfo.Mode    `json:"mode,omitzero"`
	Holder    lockinfo.Holder  `json:"holder,omitzero"`
	Since     time.Duration    `json:"since_ns,omitzero"`
	ExpiresIn time.Duration    `json:"expires_in_ns,omitzero"`
}

// Shown returns a lease ID as one caller may see it.
type Shown func(lockinfo.LeaseID) lockinfo.LeaseID

// Whole shows lease IDs unchanged.
func Whole(id lockinfo.LeaseID) lockinfo.LeaseID { return id }

// Hidden replaces a lease ID with one that cannot release the lease. It keeps the empty ID of
// a holder that is not a client of holdfast.
func Hidden(id lockinfo.LeaseID) lockinfo.LeaseID {
	if id == "" {
		return ""
	}
	return id.Hidden()
}

// LockOf returns the form of a lock.
func LockOf(l lockinfo.LockState, show Shown) Lock {
	return Lock{
		Name: l.Name, QueueLength: l.QueueLength, LastToken: l.LastToken,
		Holders: each(l.Holders, func(h lockinfo.Holding) Holding {
			h.LeaseID = show(h.LeaseID)
			return Holding(h)
		}),
		Queue: each(l.Queue, func(p lockinfo.Place) Place {
			p.LeaseID = show(p.LeaseID)
			return Place(p)
		}),
	}
}

// State returns the lock of a form.
func (l Lock) State() lockinfo.LockState {
	lock := lockinfo.LockState{
		Name: l.Name, QueueLength: l.QueueLength, LastToken: l.LastToken,
		Holders: each(l.Holders, func(h Holding) lockinfo.Holding { return lockinfo.Holding(h) }),
		Queue:   each(l.Queue, func(p Place) lockinfo.Place { return lockinfo.Place(p) }),
	}
	for _, h := range lock.Holders {
		lock.Mode = lock.Mode.Plus(h.Mode)
	}
	return lock
}

// each returns the result of f for each element.
func each[From, To any](all []From, f func(From) To) (made []To) {
	for _, one := range all {
		made = append(made, f(one))
	}
	return made
}

// Records are the reply to Break and Breaks.
type Records struct {
	Broken []Broken `json:"broken,omitempty"`
}

// A Broken is a lockinfo.Broken.
type Broken struct {
	ID      lockinfo.LeaseID `json:"id,omitzero"`       // hidden from most callers
	LeaseID lockinfo.LeaseID `json:"lease_id,omitzero"` // hidden from most callers
	Token   uint64           `json:"token"`
	Mode    lockinfo.Mode    `json:"mode,omitzero"`
	Holder  lockinfo.Holder  `json:"holder,omitzero"`
	Author  string           `json:"author"`
	Reason  string           `json:"reason,omitzero"`
	Ago     time.Duration    `json:"ago_ns"`
}

// RecordsOf returns the form of records.
func RecordsOf(all []lockinfo.Broken, show Shown) Records {
	return Records{each(all, func(b lockinfo.Broken) Broken {
		b.ID, b.LeaseID = show(b.ID), show(b.LeaseID)
		return Broken(b)
	})}
}

// Breaks returns the records of a form.
func (r Records) Breaks() []lockinfo.Broken {
	return each(r.Broken, func(b Broken) lockinfo.Broken { return lockinfo.Broken(b) })
}

// Past is the reply to History.
type Past struct {
	Events []lockinfo.HistoryEvent `json:"events,omitempty"`
}

// An EventLine is one line of Events. After a line of the kind "gap" events may be missing; the
// first line of a stream is one.
type EventLine struct {
	lockinfo.HistoryEvent
	Ping bool `json:"ping,omitzero"` // nothing happened: the server is alive
}

// A Message is one line of Notices. An empty one means that the server is alive.
type Message struct {
	LeaseID lockinfo.LeaseID `json:"lease_id,omitzero"` // of a notice
	Token   uint64           `json:"token,omitzero"`    // see driver.Notice
	Loss    *Loss            `json:"loss,omitempty"`
}

// A Loss is a driver.Loss with its error.
type Loss struct {
	driver.Loss
	Error *Error `json:"error,omitempty"`
}
