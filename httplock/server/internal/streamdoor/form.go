package streamdoor

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// A holdForm is the query of a request.
type holdForm struct {
	direct       bool // the connection ends only with the client
	clientRenews bool
}

// The effects of the end of the connection on the lease, as the lines of a stream name them.
const (
	closeReleases   = "release"
	closeFreesLater = "free_later"
	closeRunsOut    = "run_out"
)

// onClose returns the effect of the end of the connection on the lease; see hungUp.
func (s *stream) onClose() string {
	switch {
	case s.LockDelay() > 0:
		// The holder may be dead, and the lock must stay closed for the delay.
		return closeRunsOut
	case s.form.direct:
		return closeReleases
	case s.form.clientRenews:
		// The client counts from its own requests, and may work until the lease expires.
		return closeRunsOut
	}
	return closeFreesLater
}

func (f holdForm) renew() string {
	if f.clientRenews {
		return "client"
	}
	return "server"
}

// holdFormOf reads the query of a request.
func holdFormOf(r *door.Request) (f holdForm, err error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return f, door.Invalid("the query is not one: " + err.Error())
	}
	want := map[string][]string{"hold": {"1"}, "direct": {"0", "1"}, "renew": {"server", "client"}}
	for name, values := range q {
		switch {
		case want[name] == nil:
			return f, door.Invalid(fmt.Sprintf("there is no %q in the query of a stream: hold, direct and renew are", name))
		case len(values) != 1 || !slices.Contains(want[name], values[0]):
			return f, door.Invalid(fmt.Sprintf("%s is %q in the query: want one of %q", name, values, want[name]))
		}
	}
	f.clientRenews = q.Get("renew") == "client"
	f.direct, err = isDirect(r, q.Get("direct"))
	return f, err
}

// isDirect reports whether the connection ends only with the client, which may have declared it.
//
// INVARIANT I1: the end of a direct connection releases the lock, so directness must not be a
// guess. A proxy, a mesh or a tunnel may also connect from a loopback address, and may end
// while the client lives. A unix socket counts as direct unless a proxy has added a header.
// Over TCP the client must declare it.
func isDirect(r *door.Request, declared string) (bool, error) {
	proxy := caller.PassedOn(r.Request)
	if declared == "1" && proxy != "" {
		return false, door.Invalid(fmt.Sprintf(
			"direct is 1 in the query, but a proxy has passed the request on, by its header %s: leave direct out", proxy))
	}
	return declared == "1" || declared == "" && proxy == "" && caller.OverUnix(r.Request), nil
}
