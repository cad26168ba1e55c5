// Package onetime issues one-time tokens: random secrets for magic links, invitations and
// download tickets, whose payload is handed out exactly once, however many clients redeem the
// secret at the same time.
//
// # What
//
// A [Service] issues, redeems and revokes the secrets of one collection, in the store of a
// holdfast.Client.
//
// # Example
//
//	tokens, err := onetime.New(client, nil)
//	secret, err := tokens.Issue(ctx, []byte("user 42"), 15*time.Minute)
//	// mail https://example.org/login?t=<secret>, and keep it nowhere
//	payload, err := tokens.Redeem(ctx, secret)
//
// # Guarantees
//
// One payload is handed out to one request, however many come at once and whatever is lost
// on the way; see Exactly once. A secret can neither be guessed nor read in the store.
//
// # What is not promised
//
// Anyone who has a secret can redeem it: it is as safe as the way that it was sent. A store
// that loses its last writes forgets redeems. Payloads are not encrypted.
//
// # Clocks
//
// The store's clock ends a token; docs/onetime.md describes a step of that clock on each
// store.
//
// # Errors
//
// [ErrMalformed], [ErrUnknown], [ErrExpired], [ErrRevoked], [ErrRedeemed] and
// [ErrTooManyAttempts] are why a secret is refused; show them all to users as one. The
// others are the errors of package holdfast. ErrOutcomeUnknown means that the payload may have
// been handed out to this request, whose repeat with the same RequestID gets it.
//
// # Testing
//
// Package holdfasttest has a client in memory, in which tokens expire in virtual time.
//
// # The secret
//
// A secret is "hf1t_", 43 random letters and digits, which are 256 bits, and
// 6 that are a checksum of the rest: 54 characters that need no escaping in a
// URL. A secret that was mistyped or cut off is [ErrMalformed], without a request
// to the store. [Pattern] finds secrets in logs and source code.
//
// The client sends a SHA-256 over the name of the collection and the random part, and the
// store keeps the SHA-256 of that, which is the token's ID. A reader of the store can redeem
// no token, but can read the payloads of fresh ones. A secret issued in one collection is
// [ErrUnknown] in every other: an invitation does not reset a password. No
// secret is part of an error, an event, or the name of a lock.
//
// # Exactly once
//
// The engine decides in one step of its store which request gets the payload. All others get
// [ErrRedeemed], as long as the store keeps its data: a store that fails over to a replica
// without the last writes also forgets redeems.
//
// A reply can be lost after that step. Within one call the request is
// repeated, under the same ID, until it is answered; see
// [RedeemOptions.RequestID] for callers whose own reply can be lost.
//
// # Pruning
//
// Stores that do not forget by themselves, such as a SQLite file, are pruned.
// There, a redeem shares the lock with the collection's name, and inside it
// takes an exclusive lock on the token; pruning takes the collection's lock
// exclusively for one bounded batch at a time, so that both wait for each other
// in the fair queue and redeems go on between the batches. On other stores no
// lock is taken, and a redeem is one request. The guarantee that a payload is
// handed out once never depends on these locks.
//
// # Concurrency
//
// A Service is safe for concurrent use. On a store that is to be pruned, the
// first Issue, Redeem or Start starts one goroutine with one timer, which prunes;
// its errors go to the Observer. [Service.Close] ends it and waits for it.
// Nothing else is started.
package onetime
