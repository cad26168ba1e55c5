package wire

// A Session is what a web page needs to know about its user.
type Session struct {
	Caller   string   `json:"caller"`
	Rights   []string `json:"rights"`
	Prefixes []string `json:"prefixes"`  // the prefixes of the names that the caller may use; nil: every name
	SignedIn bool     `json:"signed_in"` // the caller has signed in, and has the cookie of a session
	SignIn   bool     `json:"sign_in"`   // the server checks tokens, so a user can sign in with a token
	Notice   string   `json:"notice"`    // a text that the page shows to every user; may be empty
	History  bool     `json:"history"`   // the store has a history
	Actions  []string `json:"actions"`   // the actions that the caller may take on others' locks, of: break, hold, release, forget
}

// A SignIn is a request for the cookie of a session.
type SignIn struct {
	Token string `json:"token"` // as in the header Authorization: Bearer
}

// A HoldRequest is a request to hold a lock for a person, without a process. A zero field is
// default.
type HoldRequest struct {
	ForMS  int64  `json:"for_ms"` // how long to hold it, unless it is released earlier; required
	Reason string `json:"reason"` // why, for others; required

	// FencingToken names an existing hold, which then lasts for ForMS from now on. Reason is
	// then for the server's log, and Mode, Limit and Permits must be absent.
	FencingToken uint64 `json:"fencing_token,omitempty"`

	Mode    string `json:"mode,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	Permits int    `json:"permits,omitempty"`
}

// A Hold is a lock that a person holds. Its fencing token is needed to release it.
type Hold struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
	Token
	ForMS       int64 `json:"for_ms"`
	ExpiresInMS int64 `json:"expires_in_ms"`      // count it from before the request was sent
	Repeated    bool  `json:"repeated,omitempty"` // an earlier request with the same key has got the hold
}

// A HoldRelease is a request to release a lock that a person holds.
type HoldRelease struct {
	FencingToken uint64 `json:"fencing_token"`    // the token of that lease
	Reason       string `json:"reason,omitempty"` // why, if another person holds it
}
