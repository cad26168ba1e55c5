package mutant

// quorumRepeatMutants are faults of what a quorum proposes for one lease ID,
// again and again.
func quorumRepeatMutants() []Mutant {
	return []Mutant{
		{
			Name: "quorum-repeat-below-the-first", Invariant: "I5", File: "quorumlock/attempt.go",
			Breaks:  "A repeated attempt may propose a token that is not above the one whose withdrawal is under way.",
			Old:     "max(a.req.MinToken, a.present.token)+1",
			New:     "a.req.MinToken+1",
			FoundBy: []Finder{{"quorumlock", "TestRetryOutlivesWithdrawal"}, {"quorumlock", "TestLateAcceptanceIsNotWithdrawn"}, {"systest/quorumsim", "TestSkewedClients"}},
		},
		{
			Name: "quorum-round-below-the-first", Invariant: "I5", File: "quorumlock/attempt_raise.go",
			Breaks:  "A second round may propose a smaller token than the first under the same lease ID.",
			Old:     "p := proposal{max(want.token, a.ballot.above(a.present.token)), want.lead}",
			New:     "p := want",
			FoundBy: []Finder{{"quorumlock", "TestWrongClockTakesNewID"}, {"systest/quorumsim", "TestSkewedClients"}},
		},
		{
			Name: "client-keeps-a-spent-id", Invariant: "I5", File: "acquire_attempt.go",
			Breaks:  "A client asks again under a lease ID of which the engine has said that it is spent.",
			Old:     "if err == nil && reply.Outcome == driver.Spent {\n\t\tw.startOver()",
			New:     "if err == nil && reply.Outcome == driver.Spent {",
			FoundBy: []Finder{{".", "TestSpentLeaseIDIsReplaced"}, {"quorumlock", "TestWrongClockTakesNewID"}},
		},
		{
			Name: "quorum-lead-beyond-the-quarantine", Invariant: "I2", File: "quorumlock/clocks.go",
			Breaks:  "Members whose clocks are far behind accept tokens that they are not past when they have lost their memory.",
			Old:     "return max(e.opts.MaxTTL/2, guessLead)",
			New:     "return liftedLead",
			FoundBy: []Finder{{"quorumlock", "TestSkewAndLossOfMemory"}},
		},
		{
			Name: "min-hold-beyond-the-stores-longest", File: "acquire.go",
			Breaks:  "A MinHold longer than what the store can keep is found out at the release only, and the work runs twice.",
			Old:     "err = driver.CheckTTL(capable, \"MinHold\", o.MinHold)",
			New:     "err = driver.CheckTTL(capable, \"MinHold\", 0)",
			FoundBy: []Finder{{".", "TestMaxTTLIsCheckedAtAcquire"}},
		},
		{
			Name: "quorum-batch-has-the-shortest-limit", Invariant: "I9", File: "quorumlock/extend.go",
			Breaks:  "A batch of renewals waits for slow members no longer than the shortest of its TTLs allows.",
			Old:     "x.longest = max(x.longest, req.TTL)",
			New:     "x.longest = req.TTL",
			FoundBy: []Finder{{"quorumlock", "TestBatchHasTheLongestLimit"}},
		},
	}
}
