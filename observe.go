package holdfast

import "time"

// An Observer is told what happens to leases, for metrics and logs. It is
// called synchronously, from several goroutines at once, and must return
// soon: it may hold up renewals. It must not call methods of the Client.
type Observer func(Event)

// An Event is one thing that happened to one lease.
type Event struct {
	Kind    EventKind
	Name    string
	LeaseID LeaseID
	Token   uint64        // 0 if there was no grant
	Took    time.Duration // Acquired, Refused: the wait; Released, Lost: the possession; Renewed, RenewFailed: the request
	Err     error         // why, for Refused, RenewFailed, Lost and CleanupFailed
}

// An EventKind says what happened.
type EventKind int

const (
	Acquired      EventKind = iota // a lease was handed to the caller
	Waiting                        // the first attempt met another holder; Acquire waits
	Refused                        // an acquire ended without a lease
	Renewed                        // the lease was lengthened, by the keep-alive or by Extend
	RenewFailed                    // a renewal failed or was not answered; it is retried until the deadline
	Lost                           // the lease is over without a release
	Released                       // the holder gave the lease back
	CleanupFailed                  // an abandoned request could not be called off; its lease, if any, ends with its TTL
)

func (k EventKind) String() string {
	names := [...]string{"acquired", "waiting", "refused", "renewed", "renew-failed", "lost", "released", "cleanup-failed"}
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}
