package wire

import (
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Lock is what a store knows of one name.
type Lock struct {
	Name         string   `json:"name"`
	Held         bool     `json:"held"` // by somebody who has not released it
	Mode         string   `json:"mode"`
	Limit        int      `json:"limit"` // of a semaphore; else 0
	Holders      []Holder `json:"holders"`
	QueueLength  int      `json:"queue_length"`
	Queue        []Place  `json:"queue,omitzero"` // in order; nil if it was not asked for
	LastToken    uint64   `json:"last_token"`
	LastTokenStr string   `json:"last_token_str"`

	Schedule *Schedule `json:"schedule,omitempty"` // nil: it is not the name of a schedule, nor of the lock by which one is led
}

// A LockDetails is a lock with its breaks and its do-once work.
type LockDetails struct {
	Lock
	Once   *Once    `json:"once,omitempty"` // nil: there was no do-once work under the name
	Broken []Broken `json:"broken"`         // in the last 24 hours, the latest last
}

// A Who names a holder of a lock, or a waiter, as people know them.
type Who struct {
	Host    string            `json:"host"`
	PID     int               `json:"pid"`
	User    string            `json:"user"`
	Program string            `json:"program"`          // its base name, without arguments
	Caller  string            `json:"caller,omitempty"` // as a server has identified it; the rest are its own words
	Person  bool              `json:"person"`           // a person, without a process: the lease is not renewed
	Label   string            `json:"label"`
	Reason  string            `json:"reason"`
	Labels  map[string]string `json:"labels"`
}

// A Token is a fencing token.
type Token struct {
	FencingToken    uint64 `json:"fencing_token"`
	FencingTokenStr string `json:"fencing_token_str"` // for readers without 64-bit integers
}

// A Holder has a lock.
type Holder struct {
	Who
	Permits int `json:"permits"` // of a semaphore; else 0
	Token
	HeldMS      *int64 `json:"held_ms"`       // since the grant; null: the store does not know
	ExpiresInMS *int64 `json:"expires_in_ms"` // unless it is renewed; null: never
	TTLMS       *int64 `json:"ttl_ms"`        // what expires_in_ms was at the grant or the last renewal; null: the store does not know
	Released    bool   `json:"released"`      // released; still blocks others until its minimum hold ends
	Foreign     bool   `json:"foreign"`       // a client that is not holdfast
}

// A Place is one waiter's turn in a queue.
type Place struct {
	Who
	Mode        string `json:"mode"`
	Permits     int    `json:"permits"` // of a semaphore; else 0
	WaitingMS   int64  `json:"waiting_ms"`
	ExpiresInMS int64  `json:"expires_in_ms"` // unless it is refreshed
}

// A Broken is a lease that was taken away.
type Broken struct {
	Author string `json:"author"`
	Reason string `json:"reason"`
	AgoMS  int64  `json:"ago_ms"`
	Token
	Holder Who `json:"holder"` // whose lease it was
}

// A Break is what came of taking a lock away.
type Break struct {
	Name   string   `json:"name"`
	Author string   `json:"author"`
	Reason string   `json:"reason"`
	Broken []Holder `json:"broken"` // as they were before it
}

// A Wait is what came of waiting until locks are free.
type Wait struct {
	Free     bool   `json:"free"` // all of them, in the same look
	WaitedMS int64  `json:"waited_ms"`
	Locks    []Lock `json:"locks"` // as they were seen last; none if the store did not answer
}

// A Change is what has become of one lock, or of the store, since the last look.
type Change struct {
	Change string        `json:"change"`           // appeared, changed, gone; event; store_away, store_back
	Name   string        `json:"name,omitempty"`   // of the lock
	Lock   *Lock         `json:"lock,omitempty"`   // as it is now, unless it is gone
	Event  *HistoryEvent `json:"event,omitempty"`  // of a store that has history
	Reason string        `json:"reason,omitempty"` // why the store is away
}

// LockOf returns a lock without its queue, for lists.
func LockOf(l lockinfo.LockState) Lock {
	return Lock{
		Name: l.Name, Held: len(l.Live()) > 0, Mode: l.Mode.Kind(), Limit: l.Mode.Limit(),
		Holders: HoldersOf(l.Holders), QueueLength: l.QueueLength,
		LastToken: l.LastToken, LastTokenStr: strconv.FormatUint(l.LastToken, 10),
	}
}

// WholeLockOf returns a lock with its queue.
func WholeLockOf(l lockinfo.LockState) Lock {
	v := LockOf(l)
	v.Queue = make([]Place, len(l.Queue))
	for i, w := range l.Queue {
		v.Queue[i] = Place{
			Who: WhoOf(w.Holder), Mode: w.Mode.Kind(), Permits: w.Mode.Permits(),
			WaitingMS: w.Since.Milliseconds(), ExpiresInMS: w.ExpiresIn.Milliseconds(),
		}
	}
	return v
}

// LockDetailsOf returns a lock with its queue, and who lost it.
func LockDetailsOf(l lockinfo.LockState, broken []lockinfo.Broken) LockDetails {
	return LockDetails{Lock: WholeLockOf(l), Broken: BrokenOf(broken)}
}

// BrokenOf returns leases that were taken away, in their order.
func BrokenOf(broken []lockinfo.Broken) []Broken {
	all := make([]Broken, len(broken))
	for i, b := range broken {
		all[i] = Broken{
			Author: b.Author, Reason: b.Reason, AgoMS: b.Ago.Milliseconds(),
			Token: TokenOf(b.Token), Holder: WhoOf(b.Holder),
		}
	}
	return all
}

// HoldersOf returns holders, in their order.
func HoldersOf(holdings []lockinfo.Holding) []Holder {
	holders := make([]Holder, len(holdings))
	for i, h := range holdings {
		holders[i] = Holder{
			Who: WhoOf(h.Holder), Permits: h.Mode.Permits(), Token: TokenOf(h.Token),
			HeldMS: held(h), ExpiresInMS: Left(h.ExpiresIn), TTLMS: known(h.TTL), Released: h.Released, Foreign: h.Foreign(),
		}
	}
	return holders
}

// WhoOf returns what people may know of a holder.
func WhoOf(h lockinfo.Holder) Who {
	return Who{
		Host: h.Host, PID: h.PID, User: h.User, Program: h.Program, Caller: h.Caller, Person: h.Person,
		Label: h.Label, Reason: h.Reason, Labels: h.Labels,
	}
}

// held returns since when a lease is held, in milliseconds, or nil for a foreign one.
func held(h lockinfo.Holding) *int64 {
	if h.Foreign() {
		return nil
	}
	return new(h.Since.Milliseconds())
}

// known returns the milliseconds of a duration, or nil for 0.
func known(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return Left(d)
}

// TokenOf returns a fencing token.
func TokenOf(token uint64) Token { return Token{token, strconv.FormatUint(token, 10)} }

// Left returns the milliseconds that are left, or nil for lockinfo.Never.
func Left(d time.Duration) *int64 {
	if d == lockinfo.Never {
		return nil
	}
	return new(d.Milliseconds())
}

// A Locks is one page of a list, sorted by name.
type Locks struct {
	Locks      []Lock `json:"locks"`
	NextCursor string `json:"next_cursor,omitempty"` // for the next page; empty if this is the last
}

// A BreakRequest is a request to end leases that others hold.
type BreakRequest struct {
	FencingToken uint64 `json:"fencing_token"`    // of the lease
	Older        bool   `json:"older,omitempty"`  // also those whose token is smaller
	Closed       bool   `json:"closed,omitempty"` // what a minimum hold keeps closed, and no live lease
	Reason       string `json:"reason,omitempty"` // for the holder and for others
}

// A Broke is the reply to a BreakRequest.
type Broke struct {
	Broken []Broken `json:"broken"` // by increasing token
}
