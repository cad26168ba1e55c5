package tally

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/observe"
)

// counters returns the result of Counters. It is made at the first use, because not every program
// with this package counts.
var counters = sync.OnceValue(Counters)

// count returns the counter that an event adds to, the value of its label, and the number to add.
func count(e observe.Event) (c Counter, value string, n int) {
	switch e.Kind {
	case observe.Acquired:
		return Acquires, "acquired", 1
	case observe.Refused:
		return Acquires, Refusal(e.Err), 1
	case observe.Released:
		if e.Err != nil {
			return Releases, "unconfirmed", 1
		}
	case observe.Lost:
		return Losses, LossCause(e.Err), 1
	case observe.TokensPruned:
		return OneTimeTokens, "pruned", e.Count
	case observe.RunMissed:
		return Runs, "missed", max(e.Count, 1)
	}
	p, ok := plainly()[e.Kind]
	if !ok {
		return None, "", 0
	}
	return p.counter, p.value, 1
}

// plainly has the kinds whose events always add 1 to the same counter and value.
var plainly = sync.OnceValue(func() map[observe.Kind]step {
	return map[observe.Kind]step{
		observe.Waiting:         {Waits, ""},
		observe.HandedOver:      {HandOvers, ""},
		observe.Renewed:         {Renewals, "renewed"},
		observe.RenewFailed:     {Renewals, "failed"},
		observe.Released:        {Releases, "released"},
		observe.LeaseLeft:       {Releases, "left"},
		observe.LeaseBroken:     {Breaks, ""},
		observe.CleanupFailed:   {CleanupFailures, ""},
		observe.OutageBegan:     {Outages, ""},
		observe.OnceCompleted:   {OnceResults, "completed"},
		observe.OnceReplayed:    {OnceResults, "replayed"},
		observe.OnceFailed:      {OnceResults, "failed"},
		observe.TokenIssued:     {OneTimeTokens, "issued"},
		observe.TokenRedeemed:   {OneTimeTokens, "redeemed"},
		observe.TokenRefused:    {OneTimeTokens, "refused"},
		observe.TokenRevoked:    {OneTimeTokens, "revoked"},
		observe.PruneFailed:     {PruneFailures, ""},
		observe.ClaimAccepted:   {FenceClaims, "accepted"},
		observe.ClaimRefused:    {FenceClaims, "refused"},
		observe.RequestRan:      {IdempotentRequests, "ran"},
		observe.RequestReplayed: {IdempotentRequests, "replayed"},
		observe.RequestRefused:  {IdempotentRequests, "refused"},
		observe.RunDone:         {Runs, "done"},
		observe.RunFailed:       {Runs, "failed"},
	}
})

// A step is a counter and the value of its label.
type step struct {
	counter Counter
	value   string
}

// measure returns the histogram of an event, and its value.
func measure(e observe.Event) (Histogram, float64) {
	switch {
	case e.EndsHold():
		return HoldDuration, e.Held.Seconds()
	case e.Kind == observe.Acquired, e.Kind == observe.Refused:
		return AcquireDuration, e.Waited.Seconds()
	}
	return NoHistogram, 0
}

// Refusal names in a word why an acquire ended without a lease: "unavailable" if the store did
// not answer; "held", even if the deadline of the context has ended the wait; "in-progress" for
// do-once work; "ended" if the context was cancelled, or ended before the store had answered;
// and "failed" for errors that a repeat would meet again.
func Refusal(err error) string {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "failed"
}

// refusals are in the order of their precedence, for an error that wraps several of them.
var refusals = [...]struct {
	err  error
	name string
}{
	{holdfast.ErrUnavailable, "unavailable"}, {holdfast.ErrOutcomeUnknown, "unavailable"},
	{context.Canceled, "ended"},
	{holdfast.ErrInProgress, "in-progress"}, {holdfast.ErrHeld, "held"},
	{context.DeadlineExceeded, "ended"},
}

// LossCause is holdfast.LossCause, but returns "taken" for an error that is not a loss.
func LossCause(err error) string {
	if cause := holdfast.LossCause(err); cause != "" {
		return cause
	}
	return "taken"
}
