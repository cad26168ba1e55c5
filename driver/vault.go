package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Vault is an engine with Capabilities.OneTime: it can keep one-time tokens, payloads
// that are handed out once. It identifies each by a digest, which is not secret, and returns
// its payload for the proof from which the digest is computed. It never sees the secret itself.
//
// # The life of a token
//
// A token is Fresh from the first Deposit until its TTL ends, it is redeemed,
// or it is revoked. One step of the store decides which came first, and that
// never changes: a redeemed token does not become Expired. For Memory after the
// end of its TTL, however early it was redeemed or revoked, the store must
// still return its state; from then on it is Unknown, whether or not it was
// pruned (INVARIANT I11).
//
// A payload must not be handed out, and must be gone from the store as soon as
// the store's own expiry or the next Prune allows, when the token is revoked,
// when its TTL ends while it is Fresh, and when RedeemGrace ends after
// it was redeemed.
//
// # Tokens and locks
//
// Digests and lock names have nothing to do with one another: a digest that is
// equal to a lock's name still names a token, and no token shows in Inspect or
// List. A request with an unknown digest must leave nothing in the store, because
// any client can send one.
//
// # Servers without tokens
//
// An engine whose server cannot keep tokens must answer each request with
// ErrUnsupported.
type Vault interface {
	// Deposit stores a fresh token. The same request again is a repeat
	// (INVARIANT I6), known by its By: it is not an error and must change
	// nothing, whatever the token's state is by then. In particular it neither
	// lengthens the TTL nor makes the token Fresh again. It must return
	// ErrKindMismatch, and change nothing, if a request with another By has
	// stored a token under the digest, whatever the state of that one. A digest
	// that is Unknown is free. The engine must not keep Payload itself, which
	// belongs to the caller.
	Deposit(ctx context.Context, req DepositRequest) error

	// Redeem hands out the payload of a Fresh token and makes it Redeemed, in
	// one step: of all requests for one token, through whatever engines, one
	// is answered with Granted.
	//
	// The same request again, known by its By, is a repeat: it must be answered
	// with Granted and the payload for RedeemGrace from the first time, which
	// a repeat does not lengthen (INVARIANT I6), even if the TTL has ended by
	// then, and no longer than the token is remembered. After that, and to
	// every other By from the start, the answer is only the state.
	Redeem(ctx context.Context, req RedeemRequest) (VaultReply, error)

	// Peek returns the state, and payload and ExpiresIn if that is Fresh. It
	// must change nothing.
	Peek(ctx context.Context, proof Proof) (VaultReply, error)

	// Revoke makes a Fresh token Revoked; one that is not Fresh is left as it
	// is. The reply is the state before and nothing else. A repeat is therefore
	// answered Revoked: the caller must treat both answers as success.
	Revoke(ctx context.Context, digest Digest) (VaultReply, error)

	// Prune deletes up to limit tokens that are past their Memory, and the
	// payloads of up to limit other tokens that cannot be redeemed any more.
	// It returns how many tokens it deleted, payloads not counted, and whether
	// there may be more to do; more must be false once there is nothing. It
	// must be one bounded step of the store, however many tokens it leaves
	// alone. No other method shows whether it has run, so it may be repeated.
	// The caller guarantees a limit of 1 to MaxPrune.
	Prune(ctx context.Context, limit int) (deleted int, more bool, err error)

	// SelfPruning reports whether the store does by itself what Prune does.
	// Prune then has nothing to do and must answer 0, false. The answer must
	// not change. It must be false if the engine cannot tell.
	SelfPruning() bool
}

// A Proof shows that its owner has the secret of a token: a SHA-256 over it, as 64
// lower-case hexadecimal digits. A client with the proof receives the payload, so it must be
// neither stored nor logged.
type Proof string

// Digest returns the digest of the token that the proof is for.
func (p Proof) Digest() Digest {
	sum := sha256.Sum256([]byte(p))
	return Digest(hex.EncodeToString(sum[:]))
}

// Valid reports whether p has the form of a proof.
func (p Proof) Valid() bool { return isSum(string(p)) }

// A Digest names a token, and proves nothing: the SHA-256 of its Proof as 64 lower-case
// hexadecimal digits. Engines must compare it whole.
type Digest string

// Valid reports whether d has the form of a digest.
func (d Digest) Valid() bool { return isSum(string(d)) }

// isSum reports whether s has the form of a SHA-256.
func isSum(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// A DepositRequest is a request to store one token.
type DepositRequest struct {
	Digest  Digest           `json:"digest"`
	By      lockinfo.LeaseID `json:"by"`                // drawn for this request, equal in its repeats
	Payload []byte           `json:"payload,omitempty"` // guaranteed to be at most MaxPayload long; may be empty
	TTL     time.Duration    `json:"ttl_ns"`
	Memory  time.Duration    `json:"memory_ns"` // both 10 ms to 10 years
}

// A RedeemRequest is a request for the payload of one token.
type RedeemRequest struct {
	Proof Proof            `json:"proof"`
	By    lockinfo.LeaseID `json:"by,omitzero"` // drawn for this request, equal in its repeats
}

// MaxPayload is the greatest length of a one-time token's payload in bytes.
const MaxPayload = 64 << 10

// MaxPrune is the greatest limit of one Prune.
const MaxPrune = 10_000

// RedeemGrace is how long a redeem may be repeated after its reply was lost.
const RedeemGrace = 30 * time.Second

// A VaultState is the state of a one-time token.
type VaultState int

const (
	Unknown  VaultState = iota // never deposited, or longer ago than the store remembers
	Fresh                      // it can be redeemed
	Redeemed                   // it was redeemed: by this very request if Granted is set
	Revoked                    // it was revoked before it was redeemed
	Expired                    // its TTL ended before it was redeemed
)

// A VaultReply is a Vault's answer about one token. Fields that the comments do
// not name must be zero, so that no answer reveals more than the state.
type VaultReply struct {
	State     VaultState    `json:"state"`
	Payload   []byte        `json:"payload,omitempty"`      // of Redeem, if Granted; of Peek, if Fresh; may be empty, as nil or not
	Granted   bool          `json:"granted,omitzero"`       // of Redeem, with State Redeemed: this request is handed the payload
	ExpiresIn time.Duration `json:"expires_in_ns,omitzero"` // of Peek, if Fresh: more than 0
}
