package driver

import (
	"fmt"
	"unicode"
	"unicode/utf8"
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

// checkText returns an error that wraps ErrInvalid unless people can be shown s,
// which is called what: at most limit bytes of UTF-8 without control characters.
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

// IsControl reports whether r is not allowed in a name, or in what a holder says
// of itself: a control character, which a terminal would obey, or one that
// changes the direction of the text around it, so that people read another name
// than the one that is stored.
func IsControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
