//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
)

// A desk connects the watch with the goroutines that answer requests to the control socket. No
// request blocks the watch.
type desk struct {
	extended chan chan<- struct{} // the lease was extended; the watch replies when the warden knows
	pulse    *keeper.Pulse
}

// open starts to answer the job's requests to the control socket.
func (w *watch) open() {
	d := &w.desk
	d.pulse, d.extended = keeper.NewPulse(w.Opts.StallAfter), make(chan chan<- struct{})
	w.Control.Serve(keeper.Desk{
		What: Quoted(w.Names), LeaseID: w.held.first().ID(), Lease: w.held,
		Pulse:    d.pulse,
		Extended: d.tell,
		End:      w.keeps,
	}.Answer)
}

// told bounds how long a request waits for the watch, which may have ended.
const told = time.Second

// tell makes the watch check the hold, so that the warden knows of an extension before the client
// relies on it.
func (d *desk) tell() {
	late, done := time.After(told), make(chan struct{}, 1)
	select {
	case d.extended <- done:
		<-done
	case <-late:
	}
}

// keeps refuses to end the lease before the job has ended.
func (w *watch) keeps(_ context.Context, r keeper.Request) keeper.Answer {
	return keeper.Answer{Status: exit.Config, Error: fmt.Sprintf(
		"%s %s: holdfast %s gives it back when its command ends: end that", r.Do, Quoted(w.Names), w.verb)}
}

// idle returns how long the job may go on without a heartbeat. bounded is false without
// --stall-after and with --on-lost ignore.
func (w *watch) idle() (left time.Duration, bounded bool) {
	left, bounded = w.desk.pulse.Left()
	return left, bounded && w.OnLost != Ignore
}

// stalledVerdict returns the verdict on a job that sends no heartbeats. Its lease is still live.
func (w *watch) stalledVerdict() *exit.Error {
	return &exit.Error{Status: exit.Lost, Err: fmt.Errorf(
		"%s %s: %w for %s; the command was stopped", w.verb, Quoted(w.Names), holdfast.ErrStalled, w.Opts.StallAfter)}
}

// Reasons for the end of a lease that is still live.
var (
	errUnanswered = errors.New("the store does not answer, and the lease is about to end")
	errAsleep     = errors.New("holdfast itself was stopped, or got no processor, and did not renew the lease in time")
	errUnextended = errors.New("nothing renews the lease, which is about to end: holdfast extend would have")
)
