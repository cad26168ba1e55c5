package httpfence

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The header fields of a claim. AltHeader is what some clients send; a
// request must not have both.
const (
	Header    = "Fencing-Token"
	AltHeader = "X-Fencing-Token"
)

var (
	errNoHeader  = errors.New("no " + Header + " header")
	errBadHeader = errors.New("malformed " + Header + " header")
)

// FormatHeader returns the value of the header field for c: an integer of a
// structured field (RFC 9651) with the lease ID as its parameter,
//
//	1795247753125910;lease="0123456789abcdef0123456789abcdef"
//
// or without the parameter if the ID is empty. Tokens have 16 digits and may
// have 19, but that RFC allows 15 only: read them with ParseHeader, or as a
// decimal number before the semicolon.
func FormatHeader(c fence.Claim) string {
	s := strconv.FormatUint(c.Token(), 10)
	if id := c.ID(); id != "" {
		s += `;lease="` + string(id) + `"`
	}
	return s
}

// ParseHeader reads what FormatHeader writes, with spaces after the semicolon
// if any. It is strict: a sign, a fraction, a leading zero, 0, a number greater
// than fence.MaxToken, another parameter or a second value is an error.
func ParseHeader(value string) (fence.Claim, error) {
	digits, parameter, hasLease := strings.Cut(value, ";")
	// ParseUint accepts leading zeros, and base 10 neither signs nor underscores.
	token, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || digits[0] == '0' {
		return nil, fmt.Errorf("%w: token %.40q: want a decimal integer from 1 to %d without sign or leading zeros", errBadHeader, digits, fence.MaxToken)
	}
	if !hasLease {
		return fence.NewClaim(token, ""), nil
	}
	id, ok := strings.CutPrefix(strings.TrimLeft(parameter, " "), `lease="`)
	id, quoted := strings.CutSuffix(id, `"`)
	if !ok || !quoted || !lockinfo.LeaseID(id).Valid() {
		return nil, fmt.Errorf(`%w: parameter %.60q: want lease="..." with 32 lower-case hexadecimal digits`, errBadHeader, parameter)
	}
	return fence.NewClaim(token, lockinfo.LeaseID(id)), nil
}

// claimOf returns the claim of a request, errNoHeader, or an error that wraps
// errBadHeader.
func claimOf(h http.Header) (fence.Claim, error) {
	values := slices.Concat(h.Values(Header), h.Values(AltHeader))
	switch len(values) {
	case 0:
		return nil, errNoHeader
	case 1:
		return ParseHeader(values[0])
	}
	return nil, fmt.Errorf("%w: there are %d, want one", errBadHeader, len(values))
}
