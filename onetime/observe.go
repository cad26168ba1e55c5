package onetime

// An Observer is told what happens to tokens, for metrics and logs. It is
// called synchronously, from several goroutines at once, and must return soon.
// It must not call methods of the Service.
type Observer func(Event)

// An Event is one thing that happened. It never contains a secret or a payload.
type Event struct {
	Kind   EventKind
	ID     string // of the token, see Service.ID; empty for pruning, and if the secret is malformed
	Pruned int    // of Pruned and PruneFailed: how many tokens were deleted
	Err    error  // why, for Refused and PruneFailed
}

// An EventKind says what happened.
type EventKind int

const (
	Issued      EventKind = iota // the secret was handed to the caller
	Redeemed                     // the payload was handed to the caller, maybe again
	Refused                      // a redeem ended without the payload
	Revoked                      // nobody can redeem the token any more
	Pruned                       // a round of pruning is done
	PruneFailed                  // a round of pruning ended early; the next one goes on
)

func (k EventKind) String() string {
	names := [...]string{"issued", "redeemed", "refused", "revoked", "pruned", "prune-failed"}
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}
