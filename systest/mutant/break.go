package mutant

// breakMutants are faults of taking locks away: in package holdfast, and in the
// engines.
func breakMutants() []Mutant {
	return []Mutant{
		{
			Name: "break-hits-successor", Invariant: "I6", File: "break.go",
			Breaks:  "A break without a token ends whatever is there when it reaches the store, a second time as well.",
			Old:     "req.Older = true",
			New:     "req.Older, req.Token = true, driver.MaxToken",
			FoundBy: []Finder{{".", "TestLateBreakSparesSuccessor"}},
		},
		{
			Name: "loss-unheard", File: "loss.go",
			Breaks:  "The client does not heed the message that a lease is over.",
			Old:     "case loss.LeaseID == l.id:",
			New:     "case loss.LeaseID == l.id && false:",
			FoundBy: []Finder{{".", "TestBreakEndsContextAtOnce"}},
		},
		{
			Name: "loss-without-reason", Invariant: "I10", File: "extend.go",
			Breaks:  "A holder that finds out at its next renewal does not learn who broke the lock, and why.",
			Old:     "batch[i].done(sent, q.cause(ctx, batch[i].lease))",
			New:     "batch[i].done(sent, map[int]error{q.asked: errTakenAway}[0])",
			FoundBy: []Finder{{".", "TestBreakIsFoundAtRenewal"}},
		},
		{
			Name: "inquiry-without-limit", Invariant: "I3", File: "loss.go",
			Breaks:  "The context of a lost lease stays alive until the store has said why it was lost.",
			Old:     "ctx, cancel := context.WithDeadline(ctx, q.end)",
			New:     "ctx, cancel := context.WithCancel(ctx)",
			FoundBy: []Finder{{".", "TestSlowInquiryDelaysLittle"}},
			Hang:    true,
		},
		{
			Name: "look-skips-leases-by-hand", File: "loss.go",
			Breaks:  "Time to look is no reason to ask for a lease that the caller extends.",
			Old:     "renews := l.state == stateHeld && l.renewsLocked()",
			New:     "renews := l.state == stateHeld",
			FoundBy: []Finder{{".", "TestTimeToLookRenewsAtOnce"}},
		},
		{
			Name: "memlock-break-ends-later-leases", Invariant: "I4", File: "memlock/break.go",
			Breaks:  "A break with Older ends leases that were granted after the one with its token.",
			Old:     "h.token == req.Token || req.Older && h.token < req.Token",
			New:     "h.token == req.Token || req.Older",
			FoundBy: []Finder{{"memlock", "TestConformance/BreakOfStaleLeavesSuccessor"}},
		},
		{
			Name: "memlock-break-forgets-at-once", Invariant: "I11", File: "memlock/lock.go",
			Breaks:  "The record of a break is forgotten with the first request after it.",
			Old:     "now.Sub(b.at) >= driver.BreakMemory",
			New:     "now.After(b.at)",
			FoundBy: []Finder{{"memlock", "TestConformance/BreaksAreRemembered"}},
		},
		{
			Name: "redis-break-ends-later-leases", Invariant: "I4", File: "redislock/break.lua",
			Breaks:  "A break of shared leases with Older ends those that were granted later as well.",
			Old:     "return t and (t == token or older and t < token)",
			New:     "return t and (t == token or older)",
			FoundBy: []Finder{{"redislock", "TestConformance/BreakOfStaleLeavesSuccessor"}},
		},
		{
			Name: "redis-break-without-message", File: "redislock/break.lua",
			Breaks:  "Nobody tells the holder's engine that the lock was broken.",
			Old:     "tell('all', h.member, ARGV[10])",
			New:     "local _ = ARGV[10]",
			FoundBy: []Finder{{"redislock", "TestConformance/BreakTellsHolder"}},
		},
		{
			Name: "redis-break-forgets-repeats", Invariant: "I6", File: "redislock/break.lua",
			Breaks:  "A repeated break answers that it ended nothing.",
			Old:     "if by == id then",
			New:     "if by == id and false then",
			FoundBy: []Finder{{"redislock", "TestConformance/BreakTwiceIsOnce"}},
		},
		{
			Name: "redis-break-stops-at-first-page", Invariant: "I1", File: "redislock/break.lua",
			Breaks:  "Of many leases only the first are broken.",
			Old:     "more = more or next ~= '0'",
			New:     "more = false",
			FoundBy: []Finder{{"redislock", "TestBreakOfMany"}},
		},
		{
			Name: "redis-break-of-foreign-lock", Invariant: "I12", File: "redislock/break.lua",
			Breaks:  "A break of a foreign client's lock says that there was none.",
			Old:     "if s.lock and not s.lock.limit then",
			New:     "if s.lock and not s.lock.limit and false then",
			FoundBy: []Finder{{"redislock", "TestBreakOfForeignLock"}},
		},
		{
			Name: "redis-member-repairs-broken", Invariant: "I4", File: "redislock/member.go",
			Breaks:  "A member of a quorum repairs a lease that was broken.",
			Old:     "return e.breakLeases(ctx, req, 2*driver.MaxTokenLead)",
			New:     "return e.breakLeases(ctx, req, 0)",
			FoundBy: []Finder{{"redislock", "TestMember"}},
		},
		{
			Name: "redis-subscribes-for-short-work", File: "redislock/break.go",
			Breaks:  "An engine subscribes although its client holds nothing for long.",
			Old:     "if i.held.Load() > 0 {",
			New:     "if true {",
			FoundBy: []Finder{{"redislock", "TestShortWorkDoesNotSubscribe"}},
		},
	}
}
