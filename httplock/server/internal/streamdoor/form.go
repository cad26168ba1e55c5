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

// onClose names the effect of the end of the connection on the lease; see hungUp.
func (s *stream) onClose() string {
	switch {
	case s.LockDelay() > 0:
		return "run_out"
	case s.form.direct:
		return "release"
	case s.form.clientRenews:
		return "run_out"
	}
	return "free_later"
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
	for _, p := range []struct {
		name string
		want []string
	}{{"hold", []string{"1"}}, {"direct", []string{"0", "1"}}, {"renew", []string{"server", "client"}}} {
		if values, there := q[p.name]; there && (len(values) != 1 || !slices.Contains(p.want, values[0])) {
			return f, door.Invalid(fmt.Sprintf("%s is %q in the query: want one of %q", p.name, values, p.want))
		}
		delete(q, p.name)
	}
	for name := range q {
		return f, door.Invalid(fmt.Sprintf("there is no %q in the query of a stream: hold, direct and renew are", name))
	}
	f.clientRenews = r.URL.Query().Get("renew") == "client"
	f.direct, err = isDirect(r)
	return f, err
}

// isDirect reports whether the connection ends only with the client.
//
// INVARIANT I1: the end of a direct connection releases the lock, so directness must not be a
// guess. A proxy, a mesh or a tunnel may also connect from a loopback address, and may end
// while the client lives. A unix socket counts as direct unless a proxy has added a header.
// Over TCP the client must declare it.
func isDirect(r *door.Request) (bool, error) {
	declared, proxy := r.URL.Query().Get("direct"), caller.PassedOn(r.Request)
	if declared == "1" && proxy != "" {
		return false, door.Invalid(fmt.Sprintf(
			"direct is 1 in the query, but a proxy has passed the request on, by its header %s: leave direct out", proxy))
	}
	return declared == "1" || declared == "" && proxy == "" && caller.OverUnix(r.Request), nil
}
