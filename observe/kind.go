package observe

// A Kind is the kind of an event.
type Kind int

// Kinds of a Client. Events of an acquire have Name, Mode, Once, LeaseID, Key,
// Attempt and Waited; events of a lease Name, Mode, Once, LeaseID, Key, Token, Held and
// Remaining.
const (
	Acquired      Kind = iota // the caller has a lease, by an acquire or Adopt; with Waited, Attempt, AfterWait, and the previous Holder if it had to wait
	Waiting                   // an acquire begins to wait: Err is a HeldError, with Holder, Place and Queue; or it is ErrUnavailable
	Refused                   // an acquire, or an Adopt, ended without a lease; with AfterWait, and Err
	Renewed                   // the lease was lengthened, by the keep-alive or by Extend; with Took
	RenewFailed               // a renewal failed or was not answered; it is retried until the deadline; with Took and Err
	Lost                      // the lease has ended without a release; with Err, and Author and Reason if it was broken
	Released                  // the holder released the lease; Err is nil if the store has confirmed that
	CleanupFailed             // an abandoned request could not be cancelled, or a lease could not be released: it expires with its TTL; with Err
	OutageBegan               // the store does not answer a waiting acquire, which continues to wait; with Err
	OutageEnded               // the store answers again; or the wait has ended during the outage, with the reason in Err; with Took
	LeaseLeft                 // the holder left the lease, for another client to adopt

	HandedOver   // the last holder, Holder, handed the lock over to this acquire; Acquired follows
	LeaseBroken  // Author took the lock away, for a Reason; Lost follows
	PlaceChanged // the acquire has another Place in the queue than before; with Queue and Holder
)

// Kinds of do-once work, in addition to its lease's. A run begins with Acquired. Unless its lease
// is left, the run ends once, as OnceCompleted or OnceFailed, when the lease is released: after
// Lost, if the lease was lost before. If another run is in progress, the acquire is Refused, with
// an Err that is ErrInProgress.
const (
	OnceCompleted Kind = iota + PlaceChanged + 1 // the work is done and its result is stored
	OnceReplayed                                 // the work was done before, and the caller has its result; with the Token of the run, AfterWait and Waited
	OnceFailed                                   // the run ended, and its result, if any, is not or may not be stored; with the reason in Err
)

// Kinds of one-time tokens, with the Name of the collection.
const (
	TokenIssued   Kind = iota + OnceFailed + 1 // the secret was handed to the caller; with TokenID
	TokenRedeemed                              // the payload was handed to the caller, maybe again; with TokenID
	TokenRefused                               // a redeem ended without the payload; with TokenID and Err
	TokenRevoked                               // the token cannot be redeemed any more; with TokenID
	TokensPruned                               // a round of pruning is done; with Count
	PruneFailed                                // a round of pruning ended early, and the next one continues; with Count and Err
)

// Kinds of the guards of resources, with the Name of the resource, Token and Current.
const (
	ClaimAccepted Kind = iota + PruneFailed + 1 // the claim is the mark now; in a transaction, once it commits
	ClaimRefused                                // the claim is stale: a holder continued after the end of its lease
)

// Kinds of requests with an Idempotency-Key, with the Name of the do-once key, if it is
// known yet, and Status.
const (
	RequestRan      Kind = iota + ClaimRefused + 1 // the handler ran; with Kept, and Err if the response is not kept though it should be
	RequestReplayed                                // the response was kept from an earlier request
	RequestRefused                                 // the handler did not run, or its response was withheld; with Code and Err
)

// Kinds of the runs of a schedule, with the Name of the schedule and Scheduled.
const (
	RunDone   Kind = iota + RequestRefused + 1 // a run has succeeded; with Took
	RunFailed                                  // a run has failed; with Took and Err
	RunMissed                                  // runs that were due were missed: Count of them, the last at Scheduled; with Err if the first has failed
)

var names = [...]string{
	Acquired: "acquired", Waiting: "waiting", Refused: "refused", Renewed: "renewed", RenewFailed: "renew-failed",
	Lost: "lost", Released: "released", CleanupFailed: "cleanup-failed", OutageBegan: "outage-began", OutageEnded: "outage-ended",
	LeaseLeft: "left", HandedOver: "handed-over", LeaseBroken: "broken", PlaceChanged: "place-changed",
	OnceCompleted: "once-completed", OnceReplayed: "once-replayed", OnceFailed: "once-failed",
	TokenIssued: "token-issued", TokenRedeemed: "token-redeemed", TokenRefused: "token-refused", TokenRevoked: "token-revoked",
	TokensPruned: "tokens-pruned", PruneFailed: "prune-failed",
	ClaimAccepted: "claim-accepted", ClaimRefused: "claim-refused",
	RequestRan: "request-ran", RequestReplayed: "request-replayed", RequestRefused: "request-refused",
	RunDone: "run-done", RunFailed: "run-failed", RunMissed: "run-missed",
}

// String returns the name of the kind, in lower case, with hyphens.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// MarshalText is String, for logs and JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, len(names))
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}
