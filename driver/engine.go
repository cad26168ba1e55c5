package driver

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An Engine keeps locks in one store. Several engines, in several processes
// on several machines, may be open on the same store; together they must act
// as one.
type Engine interface {
	// Acquire makes one attempt to take the lock and must not wait for it.
	//
	// If no live lease of the name is in the way it must record a lease that
	// ends req.TTL after the store carried the request out, and answer
	// Granted with a token greater than the token of every earlier grant of the
	// name (INVARIANT I2), including grants that were released, expired or
	// deleted: by at least TokenRange if the engine has Capabilities.Queue. The check and
	// the record must be one atomic step (INVARIANT I1).
	//
	// If the live lease carries req.LeaseID itself, the request is a repeat:
	// the engine must answer Granted with the token of the first time, and
	// must make the lease last at least until req.TTL from now, without ever
	// shortening it (INVARIANT I6). Only if req.First is set it must answer
	// Repeated instead; see there.
	//
	// If Release with Cancel came first for req.LeaseID, it must answer
	// Cancelled and leave no lease (INVARIANT I5).
	//
	// An engine that cannot grant this lease ID any more, though it could grant
	// another, may answer Spent. It must not while a lease of this ID may be
	// live. The caller cancels the ID and repeats the request under a new one.
	//
	// Otherwise it must answer Held, with the holder and the time left, and leave
	// the lease in the way unchanged. A request is in the way of others as
	// soon as it has a place in the queue: while there is a place, a request
	// without one, or with a later one, must be answered Held even if the live
	// leases would allow it (INVARIANT I7). If req.Queue is set and the answer
	// is Held, the engine must keep a place; see AcquireRequest.
	//
	// Several engines may receive requests for one lease ID, one after the other or at once,
	// and each may fail half-way: nothing that an engine does about its Acquire, before
	// or after it has returned, may end or shorten a lease of this ID that a repeat is
	// granted, at this engine or another (INVARIANT I5).
	//
	// A name with live leases or places must refuse with ErrKindMismatch a
	// request of another kind (INVARIANT I12). Exclusive and Shared are one
	// kind, modes with permits are one for each limit, and a lock of a foreign
	// client is of every kind.
	Acquire(ctx context.Context, req AcquireRequest) (AcquireReply, error)

	// Extend makes each lease last at least until its TTL after the store
	// carried the request out. It must never shorten a lease, so that a
	// repeat, or an old request that arrives late, does no harm. It must
	// never re-create one (INVARIANT I4): where the lease ID does not match
	// the live lease exactly the answer is ErrLost and nothing changes.
	//
	// It must return one error per request, in the order of the requests:
	// nil, ErrLost, or a failure. One failing request must not spoil the
	// others. The length of reqs is guaranteed to be 1 to
	// Capabilities.ExtendBatch.
	Extend(ctx context.Context, reqs []ExtendRequest) []error

	// Release ends the lease at once, or after req.KeepFor. It must return
	// ErrLost, and leave any other lease unchanged, if the lease is not live
	// or has been released already (INVARIANT I4). It must also give up the
	// lease ID's place in the queue.
	Release(ctx context.Context, req ReleaseRequest) error

	// Inspect reports what the store knows of a name. A free name that was
	// never used is not an error: its Lock has no holders.
	Inspect(ctx context.Context, name string) (lockinfo.LockState, error)

	// Capabilities returns which requests the engine supports. The answer must
	// not change, and a request outside it must fail with ErrUnsupported
	// without a request to the store, even if its context has ended.
	Capabilities() Capabilities

	// Close frees the engine's connections and ends its goroutines. It must
	// not touch any lease. Calls after Close must fail with ErrClosed; a
	// second Close does nothing.
	Close() error
}

// MaxBatch is the largest number of requests in one call, such as one of Refresh;
// see also Capabilities.MaxExtend.
const MaxBatch = 128

// An AcquireRequest is a request for one lock.
type AcquireRequest struct {
	Name    string           `json:"name"`          // guaranteed valid by CheckName
	LeaseID lockinfo.LeaseID `json:"lease_id"`      // guaranteed unique to one acquisition, equal in its repeats
	Mode    lockinfo.Mode    `json:"mode,omitzero"` // one that its Check does not refuse, after CheckSupport
	TTL     time.Duration    `json:"ttl_ns"`        // 10 ms to 30 days
	Holder  lockinfo.Holder  `json:"holder"`        // the client, for people; the engine stores it with the lease

	// MinToken is a token that the resource has already seen: the token
	// granted must be greater. Where a lease could be granted the engine must
	// refuse with ErrInvalid a MinToken more than MaxTokenLead ahead of the
	// store's clock, because it would lift every later token as well.
	MinToken uint64 `json:"min_token,omitzero"`

	// First means that the caller knows of no earlier request with this lease ID, and
	// must learn whether there was one. If the ID has a live lease or a place the
	// answer must be Repeated, and both must stay unchanged. An engine that has only
	// received the lease ID before may answer Repeated as well.
	First bool `json:"first,omitzero"`

	// Replicas makes the engine wait, after a grant, until this many replicas of the
	// store have acknowledged it, or until shortly before ctx ends.
	// AcquireReply.Acked must be their number. Other requests must not wait. Only
	// for engines with Capabilities.Replicas.
	Replicas int `json:"replicas,omitzero"`

	// Once requests only the record if the name has one: the answer must
	// then be Recorded, with the record, and the request gets no place. Only for
	// engines with Capabilities.Records.
	Once bool `json:"once,omitzero"`

	// Queue requests a place in the queue when the answer is Held. The place
	// must be the one of the first such request of the lease ID, in the order in
	// which the store saw them (INVARIANT I7), and must be given up WaiterTTL
	// after the last request or Refresh for it. Only for engines with
	// Capabilities.Queue.
	Queue     bool          `json:"queue,omitzero"`
	WaiterTTL time.Duration `json:"waiter_ttl_ns,omitzero"` // 10 ms to 30 days if Queue is set, else 0
}

// MaxTokenLead bounds how far MinToken may be ahead of the store's clock.
const MaxTokenLead = time.Hour

// An Outcome is the answer to an AcquireRequest.
type Outcome int

const (
	Held      Outcome = iota // another lease or place is in the way; nothing was granted
	Granted                  // the lease is recorded, now or by an earlier copy of the request
	Cancelled                // Release with Cancel came first; nothing was or will be granted
	Recorded                 // the name has a record and the request has Once set; nothing was granted
	Spent                    // nothing is granted under this lease ID; under another it may be
	Repeated                 // the request has First set and is not the first of its lease ID; nothing has changed
)

// An AcquireReply is the store's answer to an AcquireRequest.
type AcquireReply struct {
	Outcome Outcome                   `json:"outcome"`
	Token   uint64                    `json:"token,omitzero"`  // if Granted: the fencing token, 1 to MaxToken
	Acked   int                       `json:"acked,omitzero"`  // if Granted, and the request has Replicas: how many acknowledged
	Record  []byte                    `json:"record,omitzero"` // if Recorded
	Blocker `json:"blocker,omitzero"` // if Held
}

// A Blocker describes the lease that keeps a request from being granted: of
// several, the one that ends first. It must not carry that lease's token or
// ID (INVARIANT I4).
type Blocker struct {
	Holder lockinfo.Holder `json:"holder,omitzero"` // zero if a client that is not holdfast holds the lock

	// Since is how long ago the store granted the lease, or handed it over, by the store's
	// clock as the grant wrote it down. It must not be computed from the token, which may be
	// ahead of the clock. Extend, a repeat, Downgrade, and a release with KeepFor must leave it
	// unchanged. It is never negative, even if the store's clock has gone back. 0 if the store
	// does not know: of a foreign client.
	Since     time.Duration `json:"since_ns,omitzero"`
	ExpiresIn time.Duration `json:"expires_in_ns,omitzero"` // until the lease ends unless extended; Never if it has no end
	Released  bool          `json:"released,omitzero"`      // released; in the way until KeepFor ends, and never extended
	Place     int           `json:"place,omitzero"`         // 1 for the head of the queue; 0 if not queued
	Queue     int           `json:"queue,omitzero"`         // how many are queued in all, this request included

	// Foreign means that a client that is not holdfast has the lock, or that it
	// is left free for one. No message will announce the end of that, so the
	// head of the queue should send a Refresh often.
	Foreign bool `json:"foreign,omitzero"`
}

// MaxToken is the greatest fencing token. It is below 2^53, so that tokens
// are exact in the numbers of Lua and JavaScript; as microseconds of a
// server's clock it is reached in the year 2255.
const MaxToken uint64 = 1<<53 - 2

// TokenMemory is how long a store must remember the last token of an unused name,
// counted from the token read as microseconds since 1970. The program that opens
// the store may choose another time. A token must
// be at least the store's clock in microseconds. Together these make the next
// token greater, unless the store's clock goes back by more than TokenMemory in
// all. After that time the name costs nothing (INVARIANT I11).
const TokenMemory = 24 * time.Hour

// An ExtendRequest is a request to lengthen one lease.
type ExtendRequest struct {
	Name    string           `json:"name"`
	LeaseID lockinfo.LeaseID `json:"lease_id"`
	TTL     time.Duration    `json:"ttl_ns"` // 10 ms to 30 days

	// Token, unless it is 0, is the fencing token that the caller knows the lease by. If
	// the lease of this ID has another, the answer must be ErrLost: the caller's lease
	// ended, and a late copy of its acquire has been granted since.
	Token uint64 `json:"token,omitzero"`
}

// A ReleaseRequest is a request to end one lease, or to cancel an acquire.
type ReleaseRequest struct {
	Name    string           `json:"name"`
	LeaseID lockinfo.LeaseID `json:"lease_id"`

	// KeepFor, if positive, keeps the name closed for this long after the release.
	// The lease has ended (Extend answers ErrLost), but it is in the way of the same
	// requests as before, and of requests with its own lease ID: a shared lease keeps
	// exclusive requests out, and permits stay taken. A repeat must not lengthen it.
	// A time longer than Capabilities.MaxTTL must count as MaxTTL. No message
	// announces its end: waiters learn it from Blocker.ExpiresIn.
	KeepFor time.Duration `json:"keep_for_ns,omitzero"`

	// Cancel means that an AcquireRequest of this lease ID may still be under
	// way. The engine must make sure that it is never granted if it reaches
	// the store within TombstoneTTL, whether or not there was a lease to end
	// (INVARIANT I5).
	Cancel bool `json:"cancel,omitzero"`

	// Lost means that the holder counts the lease as lost and releases what the store
	// may still have of it. It must change only the kind of the event, if one is
	// written; see Historian.
	Lost bool `json:"lost,omitzero"`
}

// TombstoneTTL is how long a store remembers a cancelled lease ID.
const TombstoneTTL = time.Minute

// Capabilities describes what an engine supports beyond exclusive locks. The flags
// decide: an engine must implement the optional interfaces of its flags, and an
// interface without its flag is not used. See FeaturesOf.
type Capabilities struct {
	Shared     bool `json:"shared,omitzero"`      // mode lockinfo.Shared; the engine implements Downgrader
	Semaphore  bool `json:"semaphore,omitzero"`   // modes of lockinfo.Permits
	Queue      bool `json:"queue,omitzero"`       // AcquireRequest.Queue; the engine implements Queuer
	Replicas   bool `json:"replicas,omitzero"`    // AcquireRequest.Replicas
	Break      bool `json:"break,omitzero"`       // the engine implements Breaker
	Losses     bool `json:"losses,omitzero"`      // the engine implements LossTeller
	AcquireAll bool `json:"acquire_all,omitzero"` // the engine implements AllAcquirer
	Records    bool `json:"records,omitzero"`     // AcquireRequest.Once; the engine implements Recorder
	OneTime    bool `json:"onetime,omitzero"`     // the engine implements Vault
	List       bool `json:"list,omitzero"`        // the engine implements Lister
	Routes     bool `json:"routes,omitzero"`      // the engine implements Router
	Diagnose   bool `json:"diagnose,omitzero"`    // the engine implements Diagnoser
	History    bool `json:"history,omitzero"`     // the engine implements Historian; only if the program that opened it wants a history

	// Callers means that the store belongs to a server. The server sets Holder.Caller,
	// whatever a request has, and the Author of a break if it knows its callers.
	Callers bool `json:"callers,omitzero"`

	// MaxTTL is the longest TTL of a lease. Acquire and Extend must refuse a
	// longer one with ErrInvalid, without a request. Zero: 30 days.
	MaxTTL time.Duration `json:"max_ttl_ns,omitzero"`

	// MaxExtend is the largest number of requests in one Extend, for an engine
	// that takes more than MaxBatch in one call to its store. Zero: MaxBatch.
	MaxExtend int `json:"max_extend,omitzero"`
}

// ExtendBatch returns the largest number of requests in one Extend.
func (c Capabilities) ExtendBatch() int { return max(c.MaxExtend, MaxBatch) }
