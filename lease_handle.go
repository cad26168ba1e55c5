package holdfast

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Handle names one lease, for Client.Adopt: its lock, lease ID, fencing token and mode.
// Lease.Leave returns it. MarshalText returns its text, for another process.
//
// A client that has the text of a Handle can adopt the lease, and release it: pass it on
// as you would a password. No other text of a Handle contains the lease ID. The zero
// Handle names no lease.
type Handle struct {
	name  string
	id    LeaseID
	token uint64
	mode  Mode
}

// NewHandle returns the Handle of a lease that was not left: for programs that write it
// down before they leave the lease, in case they die, or that have acquired the lease
// through an engine. Adopt checks it.
func NewHandle(name string, id LeaseID, token uint64, mode Mode) Handle {
	return Handle{name, id, token, mode}
}

// handle returns the present Handle of the lease.
func (l *Lease) handle() Handle { return NewHandle(l.name, l.id, l.token, l.Mode()) }

// check returns an error that wraps ErrInvalid unless the handle can name a lease. The error does
// not show the lease ID, because even a mistyped one gives most of it away.
func (h Handle) check() error {
	if h == (Handle{}) {
		return fmt.Errorf("%w Handle: it is empty: want one that Leave has returned", ErrInvalid)
	}
	if err := driver.CheckName(h.name); err != nil {
		return err
	}
	switch {
	case !h.id.Valid():
		return fmt.Errorf("%w lease ID: want 32 hexadecimal digits", ErrInvalid)
	case h.token == 0 || h.token > driver.MaxToken:
		return fmt.Errorf("%w token: want the fencing token of the lease, which the store does not tell", ErrInvalid)
	}
	return h.mode.Check()
}

// handleVersion begins the text of a Handle.
const handleVersion = "holdfast1"

// MarshalText returns the handle as one word of printable ASCII, with a checksum. The
// lease ID is in it, in JSON too: keep it secret. It returns an
// error that wraps ErrInvalid unless the handle can name a lease.
func (h Handle) MarshalText() ([]byte, error) {
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("holdfast: write a handle: %w", err)
	}
	return []byte(h.text()), nil
}

// text returns version.name.leaseID.token.mode.checksum, with the name in base64. The mode of
// Permits(2, 5) is 2/5.
func (h Handle) text() string {
	mode := h.mode.Kind()
	if h.mode.Limit() != 0 {
		mode = fmt.Sprintf("%d/%d", h.mode.Permits(), h.mode.Limit())
	}
	text := fmt.Sprintf("%s.%s.%s.%d.%s", handleVersion, base64.RawURLEncoding.EncodeToString([]byte(h.name)), h.id, h.token, mode)
	return fmt.Sprintf("%s.%08x", text, crc32.ChecksumIEEE([]byte(text)))
}

// errNoHandle does not show the text: most of it may be from a valid handle.
var errNoHandle = fmt.Errorf("holdfast: read a handle: %w text: it is not what MarshalText has returned, or it was cut or changed", ErrInvalid)

// UnmarshalText reads what MarshalText has returned. It returns an error that wraps
// ErrInvalid, and leaves the handle unchanged, if the text was cut or changed.
func (h *Handle) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), ".")
	if len(parts) != 6 {
		return errNoHandle
	}
	name, _ := base64.RawURLEncoding.DecodeString(parts[1]) // the comparison with read.text below finds errors
	token, _ := strconv.ParseUint(parts[3], 10, 64)
	read := Handle{name: string(name), id: LeaseID(parts[2]), token: token}
	if parts[4] == Shared.Kind() {
		read.mode = Shared
	}
	if permits, limit, found := strings.Cut(parts[4], "/"); found {
		n, _ := strconv.Atoi(permits)
		most, _ := strconv.Atoi(limit)
		read.mode = Permits(n, most)
	}
	if read.check() != nil || read.text() != string(text) {
		return errNoHandle
	}
	*h = read
	return nil
}

// String names the lease for people; see Lease.String.
func (h Handle) String() string {
	if h == (Handle{}) {
		return "handle of no lease"
	}
	return fmt.Sprintf("handle of the %s lease of %q, token %d", h.mode, h.name, h.token)
}

// GoString is String.
func (h Handle) GoString() string { return h.String() }

// LogValue is for package log/slog; see Lease.String.
func (h Handle) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", h.name), slog.String("mode", h.mode.String()), slog.Uint64("token", h.token))
}
