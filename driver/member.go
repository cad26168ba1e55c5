package driver

import (
	"context"
	"time"
)

// A Member is one of the stores of a quorum, which together act as one engine: a
// lock is held if a majority of them has it. No store knows of the others. A
// Member need not be an Engine. If there is one on the same store, the leases of
// both exclude each other.
//
// # Counters
//
// For each name a member keeps a counter: the last token, as Inspect and the
// store's Engine know it, remembered for TokenMemory. A token of a quorum is
// even. The counter is raised to each token that the member accepts, and to the
// odd number above it when that token is withdrawn. It must never go down. That
// is what keeps the tokens of a quorum in order, and what stops a request that
// arrives too late: whatever was withdrawn can be neither accepted nor repaired
// afterwards (INVARIANT I5).
//
// # Quarantine
//
// A store that lost leases may give them to somebody else while their holders
// still trust them. So a member keeps a marker in the store. It says which run of
// the server wrote it, from one start to the next, and until when the store is in
// quarantine. A request that finds no marker, or that of another run, must write
// one that ends Quarantine from now. During the quarantine nothing may be
// accepted and nothing repaired. The marker must be lost with the leases, and
// must not expire by itself.
//
// # Breaking
//
// A member with Capabilities.Break is a Breaker. Its Break must also raise the
// counter to the odd number above the request's token, whether or not the member
// has the lease, so that it is not repaired afterwards. It must not for a token
// that is more than twice MaxTokenLead ahead of the store's clock, which no lease
// can have.
//
// # Steps
//
// Each request must be one atomic step of the store, and its repeat must have
// the effect and the answer of once (INVARIANT I6).
type Member interface {
	// Propose asks the member to accept a token. It must decide in this order:
	//
	//  1. Withdraw with Cancel came first for req.LeaseID: VoteCancelled.
	//  2. The live lease is req.LeaseID's. If its token is req.Token, the
	//     request is a repeat: VoteAccepted. If its token is greater than
	//     req.Replaces: VoteOwn. In both cases the lease must last at least
	//     until req.TTL from now, without being shortened. Any other lease of
	//     this ID is replaced, as if it were not there.
	//  3. Another live lease, or a place in a queue, is in the way: VoteHeld.
	//  4. The store is in quarantine: VoteQuarantined.
	//  5. The token is not above the counter, more than MaxProposalLag behind
	//     the store's clock, or more than req.Lead ahead of it: VoteRefused.
	//  6. Otherwise the member must record a lease with this token that ends
	//     req.TTL from now, or with the lease that it replaces if that is
	//     later, and raise the counter: VoteAccepted.
	//
	// It must change nothing else. A name that has leases of another kind must
	// be refused with ErrKindMismatch (INVARIANT I12).
	Propose(ctx context.Context, req ProposeRequest) (ProposeReply, error)

	// Renew makes leases last at least until their TTL from now, and repairs
	// those that the member has lost, or never had, if it is asked to. It must
	// return one reply per request, in their order; one failing request must
	// not spoil the others. The length of reqs is guaranteed to be 1 to
	// MaxBatch.
	//
	// If the live lease is the lease ID's, it must be lengthened, and the reply
	// must carry its token, unless Repair is set and that token is smaller than
	// the request's. With Repair, where there is no lease in the way or only
	// that one, the member must record a lease with the request's token,
	// provided that the counter is not above it, that it is not more than twice
	// MaxTokenLead ahead of the store's clock, that the lease ID was not
	// cancelled, and that the store is not in quarantine. In every other case
	// the error must be ErrLost and nothing changes.
	Renew(ctx context.Context, reqs []RenewRequest) []RenewReply

	// Withdraw ends the lease of an ID, unless its token is greater than the
	// request's, and raises the counter to the odd number above the greater of
	// the two tokens, or above the request's if there is no such lease. If the
	// request's token is more than req.Lead and TombstoneTTL ahead of the
	// store's clock, it must leave the counter alone, except for what the lease
	// itself needs.
	//
	// It must return the token of the lease that it ended, or ErrLost if there
	// was none.
	Withdraw(ctx context.Context, req WithdrawRequest) (token uint64, err error)

	// Admit ends the quarantine at once. The caller must know that no lease is
	// live: because the store is new, or because nobody has used the quorum
	// for as long as the longest TTL.
	Admit(ctx context.Context) error

	// Inspect reports what the store knows of a name, as Engine's does: the
	// lease, and the counter as LastToken.
	Inspect(ctx context.Context, name string) (Lock, error)

	// Capabilities says what else a quorum may ask for, as Engine's does: Break,
	// Losses and List.
	Capabilities() Capabilities

	// Close frees the member's connections and ends its goroutines, as Engine's
	// does. It must not touch any lease. Calls after Close must fail with
	// ErrClosed.
	Close() error
}

// MaxProposalLag is how far a proposed token may be behind the store's clock,
// read as microseconds. Together with the quarantine it makes what a store
// accepts greater than all that it accepted before it lost its memory.
const MaxProposalLag = time.Second

// A ProposeRequest asks one member to accept a token for a lease.
type ProposeRequest struct {
	Name    string
	LeaseID LeaseID
	TTL     time.Duration // 10 ms to 30 days
	Holder  Holder

	// Token is even, and guaranteed to be at most MaxToken.
	Token uint64
	// Replaces is the greatest token that the sender has proposed for this
	// lease ID before and no longer counts; 0 if none. It is less than Token.
	Replaces uint64
	// Lead is how far Token may be ahead of the store's clock. It is small for
	// a token that the sender took from a clock of its own, and at most twice
	// MaxTokenLead for one that follows from what the members said.
	Lead time.Duration
	// Quarantine is how long a store that lost its memory stays in quarantine:
	// longer than any TTL in use.
	Quarantine time.Duration
}

// A Vote is a member's answer to a ProposeRequest.
type Vote int

const (
	VoteRefused     Vote = iota // the counter or the clock is against it; nothing changed
	VoteAccepted                // the lease is recorded, now or by an earlier copy of the request
	VoteHeld                    // another lease is in the way; nothing changed
	VoteOwn                     // the lease ID has a live lease with another token, which lasts on
	VoteCancelled               // Withdraw with Cancel came first; nothing was or will be accepted
	VoteQuarantined             // the store lost its memory; nothing was accepted
)

// A ProposeReply is the answer to a ProposeRequest.
type ProposeReply struct {
	Vote    Vote
	Counter uint64 // of the name; after the request
	Clock   uint64 // of the store, in microseconds since 1970

	// Token is that of the lease ID's live lease, if VoteAccepted or VoteOwn.
	Token uint64
	// Rival is the lease ID in the way, if VoteHeld, to tell whether members
	// speak of the same lease; empty if a client that is not holdfast holds the
	// lock. Nobody but the sender may see it (INVARIANT I4).
	Rival LeaseID

	Blocker                 // if VoteHeld
	Remaining time.Duration // if VoteQuarantined: how long for
}

// A RenewRequest asks one member to lengthen or repair a lease.
type RenewRequest struct {
	Name    string
	LeaseID LeaseID
	TTL     time.Duration // 10 ms to 30 days

	// Repair asks to record the lease where it is missing. The sender must know
	// that a majority has it. The rest counts only then: Token is the lease's,
	// Since how long ago it was granted, 0 if the sender does not know, which the
	// member must tell from then on, and Quarantine as in ProposeRequest.
	Repair     bool
	Token      uint64
	Holder     Holder
	Since      time.Duration
	Quarantine time.Duration
}

// A RenewReply is the answer to one RenewRequest.
type RenewReply struct {
	Token uint64 // of the live lease; it may not be the one that the sender expects
	Err   error  // nil, ErrLost, or a failure
}

// A WithdrawRequest asks one member to end a lease, and to accept none of its
// tokens any more.
type WithdrawRequest struct {
	Name    string
	LeaseID LeaseID
	Token   uint64 // the greatest that was proposed; 0 if the sender does not know it
	// Lead, and TombstoneTTL more, is how far ahead of the store's clock the
	// counter may be lifted to Token; it may be negative.
	Lead time.Duration

	// KeepFor and Cancel are as in ReleaseRequest. A lease that is kept closed
	// is in the way of its own lease ID as well.
	KeepFor time.Duration
	Cancel  bool
}
