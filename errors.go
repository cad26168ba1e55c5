package holdfast

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The errors that a caller may test with errors.Is (INVARIANT I10). Each error of this
// package wraps one of them, and its cause. An error may be several of them:
//
//   - ErrBroken, ErrMaxHold, ErrStalled and ErrLeft are reasons, and come with ErrLost.
//   - If the caller's context has ended, the error wraps context.DeadlineExceeded or
//     context.Canceled, and the context's cause. If that ended a wait, the error is also
//     ErrHeld or ErrInProgress, with the holder; or ErrUnavailable, if the store has stopped
//     answering. If a request with an effect was under way, it is also ErrOutcomeUnknown.
//   - Do, Call and Once return the error of the work unchanged, with ErrLost added if
//     the lease was lost meanwhile.
var (
	// ErrHeld: another client has the lock. The error is a *HeldError.
	ErrHeld = errors.New("held")

	// ErrLost: the lease has ended, and cannot be had again. Another client may
	// have the lock.
	ErrLost = driver.ErrLost

	// ErrBroken: an operator or another client has ended the lease, see Client.Break. It
	// comes together with ErrLost, as a *BrokenError.
	ErrBroken = driver.ErrBroken

	// ErrUnavailable: the store cannot be reached or refuses to serve. For an
	// acquire: no lease was returned, and none will be left in the store.
	ErrUnavailable = driver.ErrUnavailable

	// ErrOutcomeUnknown: the store may or may not have carried the request
	// out.
	ErrOutcomeUnknown = driver.ErrOutcomeUnknown

	// ErrUnsupported: the engine cannot carry out the request.
	ErrUnsupported = driver.ErrUnsupported

	// ErrInvalid: the arguments are wrong. Nothing was sent to the store.
	ErrInvalid = driver.ErrInvalid

	// ErrPermission: the store refuses our credentials or rights.
	ErrPermission = driver.ErrPermission

	// ErrKindMismatch: the store has something else under this name.
	ErrKindMismatch = driver.ErrKindMismatch

	// ErrDeadlock: the context already holds the lock that the call would wait for.
	ErrDeadlock = errors.New("already held under this context")

	// ErrNotReplicated: fewer replicas acknowledged the acquire than
	// AcquireOptions.Replicas. The client releases the lease again.
	ErrNotReplicated = errors.New("not replicated")

	// ErrInProgress: another client runs the do-once work. The error is an
	// *InProgressError.
	ErrInProgress = errors.New("in progress")

	// ErrFingerprint: the do-once key was used for another request.
	ErrFingerprint = errors.New("the key was used for another request")

	// ErrClosed: the client or its engine was closed. An error that wraps ErrUnavailable too
	// means that the engine has lost its store, such as a file that was deleted: open it again.
	ErrClosed = driver.ErrClosed
)

// The reasons why a lease ends although the store can be reached. Both come
// with ErrLost in the cause of a lease's context.
var (
	// ErrMaxHold: AcquireOptions.MaxHold has ended.
	ErrMaxHold = errors.New("held for MaxHold")

	// ErrStalled: Lease.Heartbeat was not called for AcquireOptions.StallAfter.
	ErrStalled = errors.New("no heartbeat")
)

// A BrokenError has the Author and the Reason of a break that took a lock away. It is ErrLost
// and ErrBroken.
type BrokenError = lockinfo.BrokenError

// A HeldError names the holder of the lock. It is ErrHeld.
type HeldError struct {
	// Holder is zero if a client that is not holdfast has the lock, or if the
	// wait ended before the store named it.
	Holder Holder
	// Since is how long the holder has had the lock, by the store's clock, when the
	// error was made; 0 if the store does not know.
	Since time.Duration
	// ExpiresIn is how long the lease lasts unless its holder extends it,
	// counted from when the error was made; Never if it has no end. Most holders
	// extend theirs in the background, again and again.
	ExpiresIn time.Duration
	// Released: the lock has no holder. Its last one keeps it closed until
	// ExpiresIn, see AcquireOptions.MinHold.
	Released bool
	// Foreign: a client that is not holdfast has the lock, or the lock is left free for one.
	Foreign bool
	// Queue is how many clients wait for the lock.
	Queue int
	// Waited is how long Acquire waited in vain.
	Waited time.Duration
}

func (e *HeldError) Error() string {
	s := driver.Blocker{
		Holder: e.Holder, Since: e.Since, ExpiresIn: e.ExpiresIn, Released: e.Released, Foreign: e.Foreign,
	}.Possession()
	if e.Holder.Reason != "" && !e.Released {
		s += ": " + strconv.Quote(e.Holder.Reason)
	}
	if e.Waited > 0 {
		s += " (waited " + lockinfo.Span(e.Waited) + ")"
	}
	return s
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// An InProgressError names the holder that runs the do-once work. It is ErrInProgress.
type InProgressError struct {
	Holder    Holder        // see HeldError
	Since     time.Duration // for how long the work has been going on
	ExpiresIn time.Duration // until the key is free again if its holder died
	Released  bool          // see HeldError
	Foreign   bool          // see HeldError
	Queue     int           // how many clients wait for the result
	Waited    time.Duration // how long Once waited in vain
}

func (e *InProgressError) Error() string {
	held := HeldError(*e)
	return strings.Replace(held.Error(), "held by", "in progress by", 1)
}

// Is makes errors.Is(err, ErrInProgress) true.
func (e *InProgressError) Is(target error) bool { return target == ErrInProgress }

// opError adds the verb and the name to an error, and returns nil for nil:
// `holdfast: acquire "orders/42": held by deploy@web-3 (pid 812, deploy.sh) for 12m`.
func opError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("holdfast: %s %q: %w", op, name, err)
}
