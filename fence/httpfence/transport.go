package httpfence

import (
	"cmp"
	"net/http"

	"github.com/holdfast-locks/holdfast"
)

// A Transport sends the claim of the lease that a request's context belongs to
// (see holdfast.LeaseFromContext) in the header field Fencing-Token. Requests
// without a lease, or with a claim already, are sent unchanged.
//
// If the context belongs to several leases, the service may check the token of another one than
// LeaseFromContext returns: set the header field yourself, with [FormatHeader].
//
// A service that knows the lease ID can release the lease: use Transport only with trusted
// services. A redirect to another host is followed without the claim.
//
// The zero value is ready to use.
type Transport struct {
	Base http.RoundTripper // nil means http.DefaultTransport
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := cmp.Or(t.Base, http.DefaultTransport)
	lease, ok := holdfast.LeaseFromContext(r.Context())
	has := len(r.Header.Values(Header)) + len(r.Header.Values(AltHeader))
	if !ok || has > 0 || redirectedAway(r) {
		return base.RoundTrip(r)
	}
	r = r.Clone(r.Context()) // a RoundTripper must not change its request
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(Header, FormatHeader(lease))
	return base.RoundTrip(r)
}

// redirectedAway reports whether redirects led r to a different host than the caller's.
func redirectedAway(r *http.Request) bool {
	first := r
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	return first.URL.Host != r.URL.Host
}
