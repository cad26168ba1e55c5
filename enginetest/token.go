package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func tokenRequirements() []Requirement {
	return []Requirement{
		{"TokensGrowOverRelease", "I2", nil, tokensGrowOverRelease,
			"a grant must carry a greater token than every earlier grant of the name that was released"},
		{"TokensGrowOverExpiry", "I2", nil, tokensGrowOverExpiry,
			"a grant must carry a greater token than every earlier grant of the name that expired"},
		{"TokensGrowOverKeepFor", "I2", nil, tokensGrowOverKeepFor,
			"a grant must carry a greater token than every earlier grant of the name, across KeepFor too"},
		{"TokensGrowAcrossEngines", "I2", hasJoin, tokensGrowAcrossEngines,
			"the last token must be the store's, not one engine's"},
		{"TokensGrowAcrossModes", "I2", canShare, tokensGrowAcrossModes,
			"a grant must carry a greater token than every earlier grant of the name, whatever their modes"},
		{"TokenFollowsClock", "I11", nil, tokenFollowsClock,
			"a token must not be below the store's clock in microseconds, or it could not be forgotten after TokenMemory"},
		{"TokenKeptByExtend", "I2", nil, tokenKeptByExtend,
			"Extend must not change the lease's token"},
		{"MinTokenLiftsToken", "I2", nil, minTokenLifts,
			"the token granted must be greater than MinToken, and so must every later one"},
		{"TokensLeaveRoom", "I2", canQueue, tokensLeaveRoom,
			"a grant must carry a token that is greater by TokenRange, at least, than the token of every earlier grant of the name"},
		{"MinTokenTooFarAheadIsInvalid", "I2", nil, minTokenTooFar,
			"a MinToken more than MaxTokenLead ahead of the store's clock must be refused with ErrInvalid and change nothing"},
	}
}

// above fails the run unless l's token is greater than last, and returns l's token.
func (t *T) above(last uint64, l lease) uint64 {
	t.Helper()
	t.want(l.token > last, "token = %d, want more than %d of the earlier grant", l.token, last)
	return l.token
}

func tokensGrowOverRelease(t *T) {
	l := t.take("a", t.units(40))
	for range 7 {
		l = t.tokensGrow(l, t.mustRelease)
	}
}

// tokensGrow ends l and the next leases of its name with end, and checks that their tokens grow. It
// returns the last lease.
func (t *T) tokensGrow(l lease, end func(lease)) lease {
	t.Helper()
	for range 3 {
		end(l)
		next := t.take(l.Name, t.units(40))
		t.above(l.token, next)
		l = next
	}
	return l
}

// takeAhead acquires a lease with a token half an hour ahead of the store's clock. The next token
// is then greater only because the store remembers the last one.
func (t *T) takeAhead(name string, ttl time.Duration) lease {
	t.Helper()
	first := t.take(name, t.units(8))
	t.mustRelease(first)
	req := ask(name, ttl)
	req.MinToken = first.token + uint64((driver.MaxTokenLead / 2).Microseconds())
	return t.grant(req)
}

func tokensGrowOverExpiry(t *T) {
	l := t.takeAhead("a", t.units(1)/2)
	for range 2 {
		next := t.eventually(ask("a", t.units(1)/2), t.units(4))
		t.above(l.token, next)
		l = next
	}
}

func tokensGrowOverKeepFor(t *T) {
	l := t.takeAhead("a", t.units(8))
	t.mustKeep(l, t.units(1))
	t.above(l.token, t.eventually(ask("a", t.units(8)), t.units(4)))
}

func tokensGrowAcrossEngines(t *T) {
	var last uint64
	other := t.join()
	for range 10 {
		for _, each := range []*T{t, other} {
			l := each.take("a", t.units(8))
			last = t.above(last, l)
			each.mustRelease(l)
		}
	}
}

func tokensGrowAcrossModes(t *T) {
	l := t.take("a", t.units(40))
	t.mustRelease(l)
	first := t.grant(askShared("a", t.units(40)))
	last := t.above(t.above(l.token, first), t.grant(askShared("a", t.units(1)/2)))
	t.mustRelease(first)
	t.above(last, t.eventually(ask("a", t.units(8)), t.units(4)))
}

// tokenFollowsClock allows the store's clock to be an hour slow.
func tokenFollowsClock(t *T) {
	l := t.take("a", t.units(8))
	least := uint64(l.sent.Add(-time.Hour).UnixMicro())
	t.want(l.token >= least, "token = %d, want at least %d", l.token, least)
}

func tokenKeptByExtend(t *T) {
	l := t.take("a", t.units(8))
	t.mustExtend(l, t.units(16))
	h, _ := t.holding(l)
	t.want(h.Token == l.token, "token after Extend = %d, want %d", h.Token, l.token)
	t.counts("a", 1, l)
}

func minTokenLifts(t *T) {
	lifted := t.takeAhead("a", t.units(8))
	t.above(lifted.MinToken, lifted)
	t.mustRelease(lifted)
	t.above(lifted.token, t.take("a", t.units(8)))
}

// tokensLeaveRoom checks the next tokens of a request and of a place.
func tokensLeaveRoom(t *T) {
	l := t.takeAhead("a", t.units(8))
	last := l.token
	t.mustRelease(l)
	for range 2 {
		l = t.take("a", t.units(40))
		last = t.above(last+driver.TokenRange-1, l)
		next := t.queue("a", 1)
		t.mustRelease(l)
		l = t.handed(next)
		last = t.above(last+driver.TokenRange-1, l)
		t.mustRelease(l)
	}
}

func minTokenTooFar(t *T) {
	for _, minToken := range []uint64{
		uint64(time.Now().Add(24 * time.Hour).UnixMicro()), // the token of a clock that is a day ahead
		driver.MaxToken,
		driver.MaxToken + 1,
		1<<64 - 1,
	} {
		req := ask("a", t.units(8))
		req.MinToken = minToken
		t.acquireFails("a MinToken that is too far ahead", req, driver.ErrInvalid)
	}
	t.counts("a", 0, lease{})
}
