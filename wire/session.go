package wire

// A Session is what a web page has to know of its viewer.
type Session struct {
	Caller   string   `json:"caller"`
	Rights   []string `json:"rights"`
	Prefixes []string `json:"prefixes"`  // of the names that the caller may use; nil: every name
	SignedIn bool     `json:"signed_in"` // by the cookie of a session
	SignIn   bool     `json:"sign_in"`   // the server looks at tokens, so that one can sign in with one
	Notice   string   `json:"notice"`    // a text that the page shows to everybody; may be empty
	History  bool     `json:"history"`   // the store writes down what happens
	Actions  []string `json:"actions"`   // what the caller may do to others, of: break, hold, release, forget
}

// A SignIn asks for the cookie of a session.
type SignIn struct {
	Token string `json:"token"` // as behind Authorization: Bearer
}

// A HoldRequest asks to hold a lock for a person, without a process. A zero field is
// default.
type HoldRequest struct {
	ForMS  int64  `json:"for_ms"` // for how long, unless it is given back before; required
	Reason string `json:"reason"` // why, for others; required

	// FencingToken names a hold that is to last for ForMS from now on, in place of a new
	// one. Then Reason is for the server's log, and Mode, Limit and Permits must be absent.
	FencingToken uint64 `json:"fencing_token,omitempty"`

	Mode    string `json:"mode,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	Permits int    `json:"permits,omitempty"`
}

// A Hold is a lock that a person holds. To release it takes its fencing token.
type Hold struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
	Token
	ForMS       int64 `json:"for_ms"`
	ExpiresInMS int64 `json:"expires_in_ms"`      // count it from before the request was sent
	Repeated    bool  `json:"repeated,omitempty"` // an earlier request with the same key was there before this one
}

// A HoldRelease asks to give back what a person holds.
type HoldRelease struct {
	FencingToken uint64 `json:"fencing_token"`    // of that lease
	Reason       string `json:"reason,omitempty"` // of somebody else's: why
}
