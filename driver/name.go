package driver

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// MaxNameLen is the greatest length of a lock's name in bytes.
const MaxNameLen = 512

// CheckName returns an error that wraps ErrInvalid unless name can name a
// lock: 1 to MaxNameLen bytes of UTF-8 without control characters (see
// IsControl). There is no other rule: spaces, slashes and braces are allowed.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w name: it is empty", ErrInvalid)
	}
	return checkText("name", name, MaxNameLen)
}

// checkText returns an error that wraps ErrInvalid unless s is at most limit bytes of UTF-8
// without control characters. The error calls s what.
func checkText(what, s string, limit int) error {
	switch {
	case len(s) > limit:
		return fmt.Errorf("%w %s: it has %d bytes, the limit is %d", ErrInvalid, what, len(s), limit)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w %s: it is not UTF-8", ErrInvalid, what)
	}
	for i, r := range s {
		if IsControl(r) {
			return fmt.Errorf("%w %s: control character %U at byte %d", ErrInvalid, what, r, i)
		}
	}
	return nil
}

// MaxHolder is the greatest length of a Holder as JSON, in bytes.
const MaxHolder = 4096

// MaxPID is the greatest number of a process that a Holder may have.
const MaxPID = math.MaxInt32

// CheckHolder returns an error that wraps ErrInvalid if h is too large for a store to
// keep with every lease, or cannot be shown on a terminal.
func CheckHolder(h lockinfo.Holder) error {
	if h.PID < 0 || h.PID > MaxPID {
		return fmt.Errorf("%w holder: its pid is %d, want 0 to %d", ErrInvalid, h.PID, MaxPID)
	}
	texts := []string{h.Host, h.User, h.Program, h.Label, h.Reason, h.Caller}
	for k, v := range h.Labels {
		texts = append(texts, k, v)
	}
	for _, s := range texts {
		if !IsText(s) {
			return fmt.Errorf("%w holder text %q: want UTF-8 without control characters", ErrInvalid, s)
		}
	}
	encoded, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("%w holder: %w", ErrInvalid, err)
	}
	if len(encoded) > MaxHolder {
		return fmt.Errorf("%w holder: reason and labels take %d bytes, the limit is %d", ErrInvalid, len(encoded), MaxHolder)
	}
	return nil
}

// IsText reports whether s can be shown on a terminal: it is UTF-8, without what
// IsControl reports.
func IsText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, IsControl)
}

// IsControl reports whether r is not allowed in a name, or in a holder's description
// of itself: a control character, which a terminal would obey, or a character that changes
// the direction of the text around it, so that the name looks like another one.
func IsControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
