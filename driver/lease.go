package driver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// A LeaseID names one acquisition: 128 random bits as 32 lower-case
// hexadecimal digits. Engines must compare it whole.
type LeaseID string

// NewLeaseID draws a lease ID.
func NewLeaseID() LeaseID {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return LeaseID(hex.EncodeToString(b[:]))
}

// Valid reports whether id has the form of a lease ID.
func (id LeaseID) Valid() bool {
	return len(id) == 32 && strings.Trim(string(id), "0123456789abcdef") == ""
}

// Hidden returns what others may be shown in place of id: the first 128 bits of its
// SHA-256. It tells leases apart, and releases none.
func (id LeaseID) Hidden() LeaseID {
	sum := sha256.Sum256([]byte(id))
	return LeaseID(hex.EncodeToString(sum[:16]))
}

// Is reports whether shown, which a store has told of somebody's lease, is id, or is
// what is shown in its place.
func (id LeaseID) Is(shown LeaseID) bool { return shown == id || shown == id.Hidden() }

// A Holder tells people who holds a lock. Engines store it with the lease and
// give it back; they must not compare it.
type Holder struct {
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	User string `json:"user,omitempty"` // under which the process runs

	// Program is the base name of the program that runs, or of the command that is
	// run under the lock. Never its arguments: they hold passwords.
	Program string            `json:"program,omitempty"`
	Label   string            `json:"label,omitempty"`  // what the program calls itself
	Reason  string            `json:"reason,omitempty"` // why it holds the lock
	Labels  map[string]string `json:"labels,omitempty"`

	// Person says that a person holds the lock, without a process: nobody renews
	// the lease, so it ends at its expiry.
	Person bool `json:"person,omitempty"`

	// Once says that what is done under the lease is do-once work, and Fingerprint is
	// that of the request which it answers.
	Once        bool   `json:"once,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

// String names the holder for people: `worker on deploy@web-3 (pid 812, deploy.sh)`,
// or `ada@ops-1 (a person)`. What is not known is left out.
func (h Holder) String() string {
	s := joined(h.User, "@", h.Host)
	s = joined(h.Label, " on ", s)
	if s == "" {
		return "another client"
	}
	if in := h.process(); in != "" {
		s += " (" + in + ")"
	}
	return s
}

// process says what of a machine holds the lock.
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

// joined returns both texts with between between them, or the one that is not empty.
func joined(first, between, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + between + second
}
