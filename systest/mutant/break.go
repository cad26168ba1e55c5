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
			Old:     "err = q.cause(ctx, batch[i].lease)",
			New:     "err = errTakenAway",
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
	}
}
