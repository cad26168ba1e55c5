package lockinfo

import "strconv"

// A Holder describes the holder of a lock for people. Engines store it with the lease and
// return it; they must not compare it.
type Holder struct {
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	User string `json:"user,omitempty"` // the user under which the process runs

	// Program is the base name of the program that runs, or of the command that is
	// run under the lock. It never has arguments, which may contain passwords.
	Program string            `json:"program,omitempty"`
	Label   string            `json:"label,omitempty"`  // what the program calls itself
	Reason  string            `json:"reason,omitempty"` // why it holds the lock
	Labels  map[string]string `json:"labels,omitempty"`

	// Person means that a person holds the lock, without a process: the lease is
	// not renewed, so it ends at its expiry.
	Person bool `json:"person,omitempty"`

	// Caller is the client that a server has authenticated, by a token or the like. The
	// rest is the holder's own description of itself. Only servers set Caller, and replace
	// the one in a request. It is empty without a server, or if the server does not
	// authenticate clients.
	Caller string `json:"caller,omitempty"`

	// Once means that the work under the lease is do-once work, and Fingerprint is
	// the fingerprint of its request.
	Once        bool   `json:"once,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

// String names the holder for people: `worker on deploy@web-3 (pid 812, deploy.sh)`,
// or `ada@ops-1 (a person)`. Unknown parts are left out. The Caller comes first, so
// that no text of the holder can be taken for it: `ci as worker on web-3`.
func (h Holder) String() string {
	s := h.found(joined(h.Label, " on ", joined(h.User, "@", h.Host)))
	if s == "" {
		return "another client"
	}
	if in := h.process(); in != "" {
		s += " (" + in + ")"
	}
	return s
}

// found puts the Caller before the holder's own description.
func (h Holder) found(said string) string {
	switch {
	case h.Caller == "":
		return said
	case h.User != h.Caller:
		return joined(h.Caller, " as ", said)
	case h.Label == "":
		return joined(h.Caller, "@", h.Host)
	}
	return joined(h.Caller, " as ", joined(h.Label, " on ", h.Host))
}

// process names the part of a machine that holds the lock.
func (h Holder) process() string {
	switch {
	case h.Person:
		return "a person"
	case h.PID != 0 && h.Program != "":
		return "pid " + strconv.Itoa(h.PID) + ", " + h.Program
	case h.PID != 0:
		return "pid " + strconv.Itoa(h.PID)
	}
	return h.Program
}

// joined returns first, between and second; or only one of the texts if the other is empty.
func joined(first, between, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + between + second
}
