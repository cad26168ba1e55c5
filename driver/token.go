package driver

import "fmt"

// TokenRange is how many tokens a grant reserves: its own, and the next ones. On an engine with
// Capabilities.Queue the token of the next grant of the name is greater by at least TokenRange.
// So a client may let several holders follow one another under one lease, each with a token of
// its own (INVARIANT I2).
const TokenRange = 4

// LeastToken returns the smallest token that a store whose clock shows clock,
// in microseconds since 1970, may give to a request with minToken: at least
// the clock, and above minToken. An engine that counts tokens itself grants
// it, or the last token of the name plus TokenRange if that is greater (INVARIANT I2).
//
// It returns an error that wraps ErrInvalid if minToken is more than
// MaxTokenLead ahead of the clock, and ErrUnavailable if the clock is past
// MaxToken.
func LeastToken(clock, minToken uint64) (uint64, error) {
	if minToken > clock+uint64(MaxTokenLead.Microseconds()) {
		return 0, fmt.Errorf("%w MinToken %d: it is more than %s ahead of the store's clock", ErrInvalid, minToken, MaxTokenLead)
	}
	least := max(clock, minToken+1)
	if least > MaxToken {
		return 0, fmt.Errorf("%w: the wall clock is past the last fencing token, in 2255: set it", ErrUnavailable)
	}
	return least, nil
}
