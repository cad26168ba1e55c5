package wire

import (
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Lock is what a store knows of one name.
type Lock struct {
	Name         string   `json:"name"`
	Held         bool     `json:"held"` // a holder has it, and has not released it
	Mode         string   `json:"mode"`
	Limit        int      `json:"limit"` // 0 unless it is a semaphore
	Holders      []Holder `json:"holders"`
	QueueLength  int      `json:"queue_length"`
	Queue        []Place  `json:"queue,omitzero"` // in order; nil if it was not requested
	LastToken    uint64   `json:"last_token"`
	LastTokenStr string   `json:"last_token_str"`

	Schedule *Schedule `json:"schedule,omitempty"` // nil unless the name is a schedule's, or of the lock that its leader holds
}

// A LockDetails is a lock with its breaks and its do-once work.
type LockDetails struct {
	Lock
	Once   *Once    `json:"once,omitempty"` // nil: there was no do-once work under the name
	Broken []Broken `json:"broken"`         // in the last 24 hours, the latest last
}

// A Who describes the holder of a lock, or a waiter, for people.
type Who struct {
	Host    string            `json:"host"`
	PID     int               `json:"pid"`
	User    string            `json:"user"`
	Program string            `json:"program"`          // its base name, without arguments
	Caller  string            `json:"caller,omitempty"` // the name by which a server has authenticated it; the rest is its own description
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
	Permits int `json:"permits"` // 0 unless it is a semaphore
	Token
	HeldMS      *int64 `json:"held_ms"`       // since the grant; null: the store does not know
	ExpiresInMS *int64 `json:"expires_in_ms"` // unless it is renewed; null: never
	TTLMS       *int64 `json:"ttl_ms"`        // expires_in_ms as of the grant or the last renewal; null: the store does not know
	Released    bool   `json:"released"`      // released; still blocks others until its minimum hold ends
	Foreign     bool   `json:"foreign"`       // the holder is a client that is not holdfast
}

// A Place is the place of one waiter in a queue.
type Place struct {
	Who
	Mode        string `json:"mode"`
	Permits     int    `json:"permits"` // 0 unless it is a semaphore
	WaitingMS   int64  `json:"waiting_ms"`
	ExpiresInMS int64  `json:"expires_in_ms"` // unless it is refreshed
}

// A Broken is a lease that was taken away.
type Broken struct {
	Author string `json:"author"`
	Reason string `json:"reason"`
	AgoMS  int64  `json:"ago_ms"`
	Token
	Holder Who `json:"holder"` // the former holder
}

// A Break is the result of a command that breaks a lock.
type Break struct {
	Name   string   `json:"name"`
	Author string   `json:"author"`
	Reason string   `json:"reason"`
	Broken []Holder `json:"broken"` // the holders, as they were before the break
}

// A Wait is the result of a wait until locks are free.
type Wait struct {
	Free     bool   `json:"free"` // all locks were free at the same time
	WaitedMS int64  `json:"waited_ms"`
	Locks    []Lock `json:"locks"` // the locks as last read; none if the store did not answer
}

// A Change is a change of one lock, or of the store, since the last read.
type Change struct {
	Change string        `json:"change"`           // appeared, changed, gone; event; store_away, store_back
	Name   string        `json:"name,omitempty"`   // the name of the lock
	Lock   *Lock         `json:"lock,omitempty"`   // the lock as it is now, unless it is gone
	Event  *HistoryEvent `json:"event,omitempty"`  // in event, if the store has history
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

// LockDetailsOf returns a lock with its queue and its breaks.
func LockDetailsOf(l lockinfo.LockState, broken []lockinfo.Broken) LockDetails {
	return LockDetails{Lock: WholeLockOf(l), Broken: BrokenOf(broken)}
}

// BrokenOf returns broken leases, in their order.
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

// held returns for how many milliseconds a lease has been held, or nil for a foreign lease.
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
	FencingToken uint64 `json:"fencing_token"`    // the token of the lease
	Older        bool   `json:"older,omitempty"`  // also end leases whose token is smaller
	Closed       bool   `json:"closed,omitempty"` // end released leases that a minimum hold keeps closed, and no live leases
	Reason       string `json:"reason,omitempty"` // shown to the holder and to others
}

// A Broke is the reply to a BreakRequest.
type Broke struct {
	Broken []Broken `json:"broken"` // by increasing token
}
