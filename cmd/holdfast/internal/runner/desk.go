//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
)

// open starts to answer the job's requests to the control socket, on goroutines of their own. No
// request blocks the watch.
func (w *watch) open() {
	w.Control.Serve(keeper.Desk{
		What: Quoted(w.Names), LeaseID: w.held.first().ID(), Lease: w.held,
		Pulse:    w.pulse,
		Extended: w.tell,
		End:      w.keeps,
	}.Answer)
}

// answerLimit bounds how long a request waits for the watch, which may have ended.
const answerLimit = time.Second

// tell makes the watch check the hold, so that the warden knows of an extension before the client
// relies on it.
func (w *watch) tell() {
	done := make(chan struct{})
	select {
	case w.extended <- done:
		<-done
	case <-time.After(answerLimit):
	}
}

// keeps refuses to end the lease before the job has ended.
func (w *watch) keeps(_ context.Context, r keeper.Request) keeper.Answer {
	return keeper.Answer{Status: exit.Config, Error: fmt.Sprintf(
		"%s %s: holdfast %s releases it when its command ends: end that", r.Do, Quoted(w.Names), w.verb)}
}

// Reasons for the end of a lease that is still live.
var (
	errUnanswered = errors.New("the store does not answer, and the lease is about to end")
	errAsleep     = errors.New("holdfast itself was stopped, or got no processor, and did not renew the lease in time")
	errUnextended = errors.New("nothing renews the lease, which is about to end: holdfast extend would have")
)
