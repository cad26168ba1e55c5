package lockinfo

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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

// Hidden returns the form of id that others may see: the first 128 bits of its SHA-256. It
// identifies the lease, but cannot release it.
func (id LeaseID) Hidden() LeaseID {
	sum := sha256.Sum256([]byte(id))
	return LeaseID(hex.EncodeToString(sum[:16]))
}

// Is reports whether shown, the ID of a lease as a store shows it, is id or the hidden
// form of id.
func (id LeaseID) Is(shown LeaseID) bool { return shown == id || shown == id.Hidden() }
