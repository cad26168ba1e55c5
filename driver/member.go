package driver

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
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
// keeps the tokens of a quorum in order, and stops late requests: a withdrawn
// token can be neither accepted nor repaired afterwards (INVARIANT I5).
//
// # Quarantine
//
// A store that lost leases may grant their locks to other clients while the holders
// still trust the leases. So a member keeps a marker in the store: which run of the
// server wrote it, from one start to the next, and until when the store is in
// quarantine. A request that finds no marker, or the marker of another run, must write
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
	// Propose requests that the member accept a token. It must decide in this order:
	//
	//  1. Withdraw with Cancel came first for req.LeaseID: VoteCancelled.
	//  2. The live lease is req.LeaseID's. If req.Proposer proposed it, and the
	//     token is req.Token, the request is a repeat: VoteAccepted, and the
	//     lease must last at least until req.TTL from now, without being
	//     shortened. If req.Proposer proposed it, and the token is not greater
	//     than req.Replaces, it is replaced, as if it were not there. In every
	//     other case, and of a lease that is confirmed: VoteOwn.
	//  3. Another live lease, or a place in a queue, is in the way: VoteHeld.
	//  4. The store is in quarantine: VoteQuarantined.
	//  5. The token is not above the counter, more than MaxProposalLag below
	//     the store's clock, or more than req.Lead ahead of it: VoteRefused.
	//  6. Otherwise the member must record a lease with this token and this
	//     proposer that ends req.TTL from now, or with the lease that it replaces if that is
	//     later, and raise the counter: VoteAccepted.
	//
	// It must change nothing else. A name that has leases of another kind must
	// be refused with ErrKindMismatch (INVARIANT I12).
	Propose(ctx context.Context, req ProposeRequest) (ProposeReply, error)

	// Renew makes leases last at least until their TTL from now, and repairs
	// those that the member has lost, or never had, if Repair is set. It must
	// return one reply per request, in their order; one failing request must
	// not spoil the others. The length of reqs is guaranteed to be 1 to
	// MaxBatch.
	//
	// If the live lease is the lease ID's, it must be lengthened and confirmed,
	// and the reply must carry its token, unless the request has another token: with
	// Repair a smaller one counts as none, and a greater one is lengthened as well. With Repair, where there is no lease in the way or only
	// that one, the member must record a lease with the request's token, confirmed,
	// provided that the counter is not above it, that it is not more than twice
	// MaxTokenLead ahead of the store's clock, that the lease ID was not
	// cancelled, and that the store is not in quarantine. In every other case
	// the error must be ErrLost and nothing changes.
	Renew(ctx context.Context, reqs []RenewRequest) []RenewReply

	// Withdraw ends the lease of an ID: with req.Released whatever it is, and
	// otherwise only if req.Proposer proposed it and its token is not greater than
	// the request's. It raises the counter to the odd number above the greater of
	// the two tokens, or above the request's if it has ended no lease. It must leave
	// the counter alone where the lease stays and has exactly the request's token,
	// so that it can be repaired. It must also leave it alone if the request's token
	// is more than req.Lead and TombstoneTTL ahead of the store's clock, except as
	// far as the lease itself needs it.
	//
	// It must return the token of the lease that it ended, or ErrLost if there
	// was none.
	Withdraw(ctx context.Context, req WithdrawRequest) (token uint64, err error)

	// Admit ends the quarantine at once. The caller must know that no lease is
	// live: because the store is new, or because the quorum was not used
	// for as long as the longest TTL.
	Admit(ctx context.Context) error

	// Inspect reports what the store knows of a name, as Engine's does: the
	// lease, and the counter as LastToken.
	Inspect(ctx context.Context, name string) (lockinfo.LockState, error)

	// Capabilities returns what else a quorum may request, as Engine's does: Break,
	// Losses and List.
	Capabilities() Capabilities

	// Close frees the member's connections and ends its goroutines, as Engine's
	// does. It must not touch any lease. Calls after Close must fail with
	// ErrClosed.
	Close() error
}

// MaxProposalLag is how far a proposed token may be below the store's clock,
// read as microseconds. With the quarantine, it makes each token that a store
// accepts greater than all tokens that it accepted before it lost its memory.
const MaxProposalLag = time.Second

// A ProposeRequest is a request to one member to accept a token for a lease. A member must refuse
// one that fails Check.
type ProposeRequest struct {
	Name     string
	LeaseID  lockinfo.LeaseID
	Proposer Proposer      // who sends it
	TTL      time.Duration // 10 ms to 30 days
	Holder   lockinfo.Holder

	// Token is even, and guaranteed to be at most MaxToken.
	Token uint64
	// Replaces is the greatest token that the proposer proposed earlier for
	// this lease ID and has dropped; 0 if none. It is less than Token.
	Replaces uint64
	// Lead is how far Token may be ahead of the store's clock. It is small for
	// a token that the sender took from a clock of its own, and at most twice
	// MaxTokenLead for one that it took from the members' answers.
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
	VoteOwn                     // the lease ID has another live lease, perhaps by another engine; nothing changed
	VoteCancelled               // Withdraw with Cancel came first; nothing was or will be accepted
	VoteQuarantined             // the store lost its memory; nothing was accepted
)

// A ProposeReply is the answer to a ProposeRequest.
type ProposeReply struct {
	Vote    Vote
	Counter uint64 // of the name; after the request
	Clock   uint64 // of the store, in microseconds since 1970

	// Token is the token of the lease ID's live lease, if VoteAccepted or VoteOwn.
	Token uint64
	// Rival is the lease ID in the way, if VoteHeld, which shows whether
	// members mean the same lease; empty if a client that is not holdfast holds
	// the lock. Only the sender may see it (INVARIANT I4).
	Rival lockinfo.LeaseID

	Blocker                 // if VoteHeld
	Remaining time.Duration // if VoteQuarantined: how long for
}

// A RenewRequest is a request to one member to lengthen or repair a lease.
type RenewRequest struct {
	Name    string
	LeaseID lockinfo.LeaseID
	TTL     time.Duration // 10 ms to 30 days

	// Token is the lease's token, or 0 if the sender does not know it. Unless it is
	// 0, a lease with another token counts as lost, and stays unchanged.
	Token uint64

	// Repair records the lease where it is missing. The sender must know that a
	// majority has it, and Token. The other fields are only for a repair. Since is
	// how long ago the lease was granted, or 0 if the sender does not know; the
	// member must report it from then on. Quarantine is as in ProposeRequest.
	Repair     bool
	Holder     lockinfo.Holder
	Since      time.Duration
	Quarantine time.Duration
}

// A RenewReply is the answer to one RenewRequest.
type RenewReply struct {
	Token uint64 // of the live lease; it may not be the one that the sender expects
	Err   error  // nil, ErrLost, or a failure
}

// A WithdrawRequest is a request to one member to end a lease, and to accept none of its
// tokens any more. A member must refuse one that fails Check.
type WithdrawRequest struct {
	Name    string
	LeaseID lockinfo.LeaseID
	// Proposer is the sender's own. A lease that was extended or repaired is confirmed: its
	// caller has it, so no engine may withdraw it as a proposal of its own any more.
	Proposer Proposer
	// Released means that the caller has released or cancelled the lease ID. Its lease
	// ends, whatever the proposer and the token. Proposer is empty then.
	Released bool
	Token    uint64 // the greatest that was proposed; 0 if the sender does not know it
	// Lead plus TombstoneTTL bounds how far ahead of the store's clock Token
	// may lift the counter; Lead may be negative.
	Lead time.Duration

	// KeepFor and Cancel are as in ReleaseRequest, and only with Released. A lease that
	// is kept closed is in the way of its own lease ID as well.
	KeepFor time.Duration
	Cancel  bool
}
