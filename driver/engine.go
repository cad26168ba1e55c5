package driver

import (
	"context"
	"time"
)

// An Engine keeps locks in one store. Several engines, in several processes
// on several machines, may be open on the same store; together they must act
// as one.
type Engine interface {
	// Acquire makes one attempt to take the lock and must not wait for it.
	//
	// If no live lease of the name is in the way it must record a lease that
	// ends req.TTL after the store carried the request out, and answer
	// Granted with a token greater than that of every earlier grant of the
	// name (INVARIANT I2), including grants that were released, expired or
	// deleted. The check and the record must be one atomic step
	// (INVARIANT I1).
	//
	// If the live lease carries req.LeaseID itself, the request is a repeat:
	// the engine must answer Granted with the token of the first time, and
	// must make the lease last at least until req.TTL from now, without ever
	// shortening it (INVARIANT I6).
	//
	// If Release with Cancel came first for req.LeaseID, it must answer
	// Cancelled and leave no lease (INVARIANT I5).
	//
	// An engine that cannot grant this lease ID any more, though it could grant
	// another, may answer Spent. It must not while a lease of this ID may be
	// live. The caller cancels the ID and asks again under a new one.
	//
	// Otherwise it must answer Held, say by whom and for how long, and leave
	// the lease in the way unchanged. A request is in the way of others as
	// soon as it has a place in the queue: while anybody has one, a request
	// without, or behind, must be answered Held even if the live leases would
	// allow it (INVARIANT I7). If req.Queue is set and the answer is Held, the
	// engine must keep a place; see AcquireRequest.
	//
	// Once Acquire has returned, nothing that the engine still does about it may
	// end or shorten a lease that a repeat is granted later.
	//
	// A name with live leases or places must refuse with ErrKindMismatch a
	// request of another kind (INVARIANT I12). Exclusive and Shared are one
	// kind, Semaphore is one for each Limit, and a lock of a foreign client is
	// of every kind.
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
	Inspect(ctx context.Context, name string) (Lock, error)

	// Capabilities says which requests the engine supports. The answer must
	// not change, and a request outside it must fail with ErrUnsupported
	// without asking the store, even if its context has ended.
	Capabilities() Capabilities

	// Close frees the engine's connections and ends its goroutines. It must
	// not touch any lease. Calls after Close must fail with ErrClosed; a
	// second Close does nothing.
	Close() error
}

// MaxBatch is the largest number of requests in one call, such as one of Refresh;
// see also Capabilities.MaxExtend.
const MaxBatch = 128

// An AcquireRequest asks for one lock.
type AcquireRequest struct {
	Name    string  // guaranteed valid by CheckName
	LeaseID LeaseID // guaranteed unique to one acquisition, equal in its repeats
	Mode    Mode
	Limit   int           // permits of a Semaphore, 1 to MaxLimit; else 0
	Permits int           // of them, how many this request takes: 1 to Limit; else 0
	TTL     time.Duration // 10 ms to 30 days
	Holder  Holder        // who asks, for people; the engine stores it with the lease

	// MinToken is a token that the resource has already seen: the token
	// granted must be greater. Where a lease could be granted the engine must
	// refuse with ErrInvalid a MinToken more than MaxTokenLead ahead of the
	// store's clock, because it would lift every later token as well.
	MinToken uint64

	// Replicas asks to wait, after a grant, until this many replicas of the
	// store have acknowledged it, or until shortly before ctx ends.
	// AcquireReply.Acked must say how many have. Other requests must not wait
	// as well. Only for engines with Capabilities.Replicas.
	Replicas int

	// Once asks for nothing but the record if the name has one: the answer must
	// then be Recorded, with the record, and the request gets no place. Only for
	// engines with Capabilities.Records.
	Once bool

	// Queue asks for a place in the queue when the answer is Held. The place
	// must be that of the first such request of the lease ID, in the order in
	// which the store saw them (INVARIANT I7), and must be given up WaiterTTL
	// after the last request or Refresh for it. Only for engines with
	// Capabilities.Queue.
	Queue     bool
	WaiterTTL time.Duration // 10 ms to 30 days if Queue is set, else 0
}

// MaxTokenLead bounds how far MinToken may be ahead of the store's clock.
const MaxTokenLead = time.Hour

// An Outcome is the answer to an AcquireRequest.
type Outcome int

const (
	Held      Outcome = iota // another lease or place is in the way; nothing was granted
	Granted                  // the lease is recorded, now or by an earlier copy of the request
	Cancelled                // Release with Cancel came first; nothing was or will be granted
	Recorded                 // the name has a record and the request asked for Once; nothing was granted
	Spent                    // nothing is granted under this lease ID; under another it may be
)

// An AcquireReply is the store's answer to an AcquireRequest.
type AcquireReply struct {
	Outcome Outcome
	Token   uint64 // if Granted: the fencing token, 1 to MaxToken
	Acked   int    // if Granted, and Replicas were asked for: how many acknowledged
	Record  []byte // if Recorded
	Blocker        // if Held
}

// A Blocker describes the lease that keeps a request from being granted: of
// several, the one that ends first. It must not carry that lease's token or
// ID (INVARIANT I4).
type Blocker struct {
	Holder Holder // zero if a client that is not holdfast holds the lock

	// Since is how long ago the store granted the lease, or handed it over, by the
	// store's clock as the grant wrote it down. It must not be taken from the token,
	// which may be ahead of the clock. Extend, a repeat, Downgrade, and a release
	// with KeepFor must leave it as it is. It is never negative, even if the store's
	// clock has gone back. 0 if the store does not know: of a foreign client.
	Since     time.Duration
	ExpiresIn time.Duration // until the lease ends unless extended; Never if it has no end
	Released  bool          // released; in the way until KeepFor ends, which nobody extends
	Place     int           // 1 for the head of the queue; 0 if not queued
	Queue     int           // how many are queued in all, this request included

	// Foreign says that a client that is not holdfast has the lock, or that it
	// is left free for one. Nobody will announce the end of that, so the head
	// of the queue should send a Refresh often.
	Foreign bool
}

// Never is the ExpiresIn of a lock that a foreign client took without a TTL.
const Never time.Duration = -1

// MaxToken is the greatest fencing token. It is below 2^53, so that tokens
// are exact in the numbers of Lua and JavaScript; as microseconds of a
// server's clock it is reached in the year 2255.
const MaxToken uint64 = 1<<53 - 2

// TokenMemory is how long a store must remember the last token of an unused
// name, unless whoever opens it says otherwise, counted from the token read as microseconds since 1970. A token must
// be at least the store's clock in microseconds. Together these make the next
// token greater, unless the store's clock goes back by more than TokenMemory in
// all. After that time the name costs nothing (INVARIANT I11).
const TokenMemory = 24 * time.Hour

// An ExtendRequest asks to lengthen one lease.
type ExtendRequest struct {
	Name    string
	LeaseID LeaseID
	TTL     time.Duration // 10 ms to 30 days
}

// A ReleaseRequest asks to end one lease, or to cancel an acquire.
type ReleaseRequest struct {
	Name    string
	LeaseID LeaseID

	// KeepFor, if positive, keeps the name closed for this long after the
	// release. The lease is over (Extend answers ErrLost), but it is in the way
	// of the same requests as before, and of those of its own lease ID: a shared
	// lease keeps exclusive requests out, and permits stay taken. A repeat must
	// not lengthen it. One longer than Capabilities.MaxTTL must count as that.
	// No message announces its end: waiters learn it from Blocker.ExpiresIn.
	KeepFor time.Duration

	// Cancel says that an AcquireRequest of this lease ID may still be under
	// way. The engine must make sure that it is never granted if it reaches
	// the store within TombstoneTTL, whether or not there was a lease to end
	// (INVARIANT I5).
	Cancel bool

	// Lost says that the holder counts the lease as lost and gives back what the
	// store may still have of it. It must change nothing but the kind of the event that
	// is written, if any is; see Historian.
	Lost bool
}

// MaxLimit is the greatest Limit of a Semaphore.
const MaxLimit = 1_000_000

// TombstoneTTL is how long a store remembers a cancelled lease ID.
const TombstoneTTL = time.Minute

// Capabilities says what an engine supports beyond exclusive locks. The flags
// decide and the optional interfaces only carry: an engine must implement those
// of its flags, and one that it implements without the flag is not used. See
// FeaturesOf.
type Capabilities struct {
	Shared      bool // Mode Shared; the engine implements Downgrader
	Semaphore   bool // Mode Semaphore
	Queue       bool // AcquireRequest.Queue; the engine implements Queuer
	Replicas    bool // AcquireRequest.Replicas
	Break       bool // the engine implements Breaker
	Losses      bool // the engine implements LossTeller
	AcquireAll  bool // the engine implements AllAcquirer
	Records     bool // AcquireRequest.Once; the engine implements Recorder
	OneTime     bool // the engine implements Vault
	List        bool // the engine implements Lister
	ListRecords bool // the engine implements RecordLister
	Routes      bool // the engine implements Router
	Diagnose    bool // the engine implements Diagnoser
	History     bool // the engine implements Historian; only if whoever opened it has asked for that

	// MaxTTL is the longest TTL of a lease. Acquire and Extend must refuse a
	// longer one with ErrInvalid, without asking the store. Zero: 30 days.
	MaxTTL time.Duration

	// MaxExtend is the largest number of requests in one Extend, for an engine
	// that takes more than MaxBatch in one call to its store. Zero: MaxBatch.
	MaxExtend int
}

// ExtendBatch returns the largest number of requests in one Extend.
func (c Capabilities) ExtendBatch() int { return max(c.MaxExtend, MaxBatch) }
