package driver

import (
	"crypto/rand"
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

// A Holder tells people who holds a lock. Engines store it with the lease and
// give it back; they must not compare it.
type Holder struct {
	Host   string            `json:"host,omitempty"`
	PID    int               `json:"pid,omitempty"`
	Label  string            `json:"label,omitempty"`  // what the program calls itself
	Reason string            `json:"reason,omitempty"` // why it holds the lock
	Labels map[string]string `json:"labels,omitempty"`

	// Fingerprint is that of the request which do-once work answers.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// String names the holder for people: `worker on web-3 (pid 812)`.
func (h Holder) String() string {
	s := h.Host
	if s == "" {
		s = h.Label
	} else if h.Label != "" {
		s = h.Label + " on " + s
	}
	if s == "" {
		return "another client"
	}
	if h.PID != 0 {
		s += " (pid " + strconv.Itoa(h.PID) + ")"
	}
	return s
}
