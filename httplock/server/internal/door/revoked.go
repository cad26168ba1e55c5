package door

import (
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// LookAgain is how often a stream identifies its caller again, so that a removed or expired
// token ends its streams within a minute, together with the delay of caller.File.
const LookAgain = 20 * time.Second

// Revoked reports whether the caller is no longer known, or whether its rights have changed
// since the request arrived. It identifies the caller every LookAgain, and costs nothing in
// between. Only one goroutine at a time may call it. If the caller cannot be identified now,
// it keeps its rights: a broken issuer ends no stream.
func (r *Request) Revoked() bool {
	now := time.Now()
	switch {
	case r.revoked || r.House.Identify == nil:
		return r.revoked
	case r.vouched.IsZero():
		r.vouched = now
		return false
	case now.Sub(r.vouched) < LookAgain:
		return false
	}
	r.vouched = now
	_ = r.Aside(func() { r.revoked = !r.vouchedFor() }) // a panic is logged, and revokes nothing
	if r.revoked {
		r.Audit("revoked")
	}
	return r.revoked
}

func (r *Request) vouchedFor() bool {
	c, err := r.House.Identify(r)
	if err != nil {
		return RefusalOf(err).Status != http.StatusUnauthorized
	}
	return sameCaller(c, r.Caller)
}

func sameCaller(a, b *caller.Caller) bool {
	return a.Name == b.Name && a.Rights == b.Rights && (a.Prefixes == nil) == (b.Prefixes == nil) && slices.Equal(a.Prefixes, b.Prefixes)
}

// Challenge returns the header of a refusal with status 401. wrong reports that the client has
// sent a token, which is not valid.
func Challenge(wrong bool) http.Header {
	challenge := `Bearer realm="holdfast"`
	if wrong {
		challenge += `, error="invalid_token"`
	}
	return http.Header{"Www-Authenticate": {challenge}}
}

// ErrRevoked is the refusal of a request whose caller was revoked while it was answered.
var ErrRevoked error = &Refusal{
	Status: http.StatusUnauthorized, Code: "not-authenticated", Header: Challenge(true),
	Detail: "the server does not know you any more, or what you may do has changed: ask again",
}
