package mutant

// quorumRepeatMutants are faults of what a quorum proposes for one lease ID,
// again and again.
func quorumRepeatMutants() []Mutant {
	return []Mutant{
		{
			Name: "quorum-repeat-below-the-first", Invariant: "I5", File: "quorumlock/acquire.go",
			Breaks:  "A repeated attempt may propose a token that is not above the one whose withdrawal is under way.",
			Old:     "max(a.req.MinToken, a.present.token)+1",
			New:     "a.req.MinToken+1",
			FoundBy: []Finder{{"quorumlock", "TestRetryOutlivesWithdrawal"}, {"quorumlock", "TestLateAcceptanceIsNotWithdrawn"}, {"systest/quorumsim", "TestSkewedClients"}},
		},
		{
			Name: "quorum-round-below-the-first", Invariant: "I5", File: "quorumlock/attempt.go",
			Breaks:  "A second round may propose a smaller token than the first under the same lease ID.",
			Old:     "token := max(want, a.ballot.above(a.present.token))",
			New:     "token := want",
			FoundBy: []Finder{{"quorumlock", "TestWrongClockTakesNewID"}, {"systest/quorumsim", "TestSkewedClients"}},
		},
		{
			Name: "client-keeps-a-spent-id", Invariant: "I5", File: "acquire.go",
			Breaks:  "A client asks again under a lease ID of which the engine has said that it is spent.",
			Old:     "if err == nil && reply.Outcome == driver.Spent {\n\t\tw.startOver()",
			New:     "if err == nil && reply.Outcome == driver.Spent {",
			FoundBy: []Finder{{".", "TestSpentLeaseIDIsReplaced"}, {"quorumlock", "TestWrongClockTakesNewID"}},
		},
	}
}
