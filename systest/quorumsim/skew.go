package quorumsim

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Skew returns m as a client sees it whose clock is ahead of m's by ahead, to two microseconds.
// Both use the clock of the test, so Skew moves the tokens instead: the client's tokens are m's,
// less ahead.
func Skew(m driver.Member, ahead time.Duration) driver.Member {
	return &skewed{Member: m, ahead: uint64(ahead.Microseconds()) &^ 1}
}

type skewed struct {
	driver.Member
	ahead uint64 // in microseconds, as a number that wraps; even, as tokens are
}

// Capabilities returns none: only requests of skewed's own methods can be converted.
func (s *skewed) Capabilities() driver.Capabilities { return driver.Capabilities{} }

// there converts a token of the client to the member's clock. here does the reverse.
func (s *skewed) there(token uint64) uint64 { return moved(token, s.ahead) }
func (s *skewed) here(token uint64) uint64  { return moved(token, -s.ahead) }

// moved converts a token to a clock that is ahead by so many microseconds. 0 means no token.
func moved(token, ahead uint64) uint64 {
	if token == 0 {
		return 0
	}
	return token + ahead
}

func (s *skewed) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	req.Token, req.Replaces = s.there(req.Token), s.there(req.Replaces)
	reply, err := s.Member.Propose(ctx, req)
	reply.Token, reply.Counter, reply.Clock = s.here(reply.Token), s.here(reply.Counter), s.here(reply.Clock)
	return reply, err
}

func (s *skewed) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	req.Token = s.there(req.Token)
	token, err := s.Member.Withdraw(ctx, req)
	return s.here(token), err
}

func (s *skewed) Renew(ctx context.Context, reqs []driver.RenewRequest) []driver.RenewReply {
	reqs = slices.Clone(reqs)
	for i := range reqs {
		reqs[i].Token = s.there(reqs[i].Token)
	}
	replies := s.Member.Renew(ctx, reqs)
	for i := range replies {
		replies[i].Token = s.here(replies[i].Token)
	}
	return replies
}
