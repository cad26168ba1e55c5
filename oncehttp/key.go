package oncehttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// The header fields of requests and of replayed responses.
const (
	Header         = "Idempotency-Key"
	ReplayedHeader = "Idempotency-Replayed"
)

// MaxKey is the greatest length of a key in bytes.
const MaxKey = 255

var (
	errNoKey  = errors.New("no " + Header + " header")
	errBadKey = errors.New("malformed " + Header + " header")
)

// ParseKey reads the value of the header field. It is a string of a structured
// field (RFC 9651), as the draft has it,
//
//	"8e03978e-40d5-43e8-bc93-6894a57f9324"
//
// or, as most clients send it, the same without quotation marks: then of
// visible ASCII characters without quotation mark, backslash, comma and
// semicolon. Both mean the same key, of 1 to MaxKey bytes. Parameters and
// lists are errors.
func ParseKey(value string) (string, error) {
	value = strings.Trim(value, " \t")
	key, err := value, error(nil)
	if strings.HasPrefix(value, `"`) {
		key, err = unquote(value[1:])
	} else if i := strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"\,;`, r) }); i >= 0 {
		err = fmt.Errorf("%w: %.40q: it may not have the character at byte %d without quotation marks", errBadKey, value, i)
	}
	switch {
	case err != nil:
		return "", err
	case key == "" || len(key) > MaxKey:
		return "", fmt.Errorf("%w: the key has %d bytes, want 1 to %d", errBadKey, len(key), MaxKey)
	}
	return key, nil
}

// unquote reads a string of a structured field after its first quotation mark.
func unquote(value string) (string, error) {
	var key strings.Builder
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '"' && i == len(value)-1:
			return key.String(), nil
		case c == '"':
			return "", fmt.Errorf("%w: there is more after the string", errBadKey)
		case c == '\\':
			if i++; i == len(value) || value[i] != '"' && value[i] != '\\' {
				return "", fmt.Errorf("%w: a backslash must be followed by a quotation mark or a backslash", errBadKey)
			}
			c = value[i]
		case c < ' ' || c > '~':
			return "", fmt.Errorf("%w: character %#02x: want printable ASCII", errBadKey, c)
		}
		key.WriteByte(c)
	}
	return "", fmt.Errorf("%w: there is no quotation mark at its end", errBadKey)
}

// FormatKey returns the value of the header field for a key, as a string of a
// structured field. The key must be of printable ASCII characters.
func FormatKey(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// keyOf returns the key of a request, errNoKey, or an error that wraps
// errBadKey.
func keyOf(h http.Header) (string, error) {
	values := h.Values(Header)
	switch len(values) {
	case 0:
		return "", errNoKey
	case 1:
		return ParseKey(values[0])
	}
	return "", fmt.Errorf("%w: there are %d, want one", errBadKey, len(values))
}
