package mutant

// quorumMutants are faults of the engine made of several.
func quorumMutants() []Mutant {
	return append(quorumRepeatMutants(), []Mutant{
		{
			Name: "quorum-of-half", Invariant: "I1", File: "quorumlock/engine.go",
			Breaks:  "Less than a majority of the members is enough.",
			Old:     "quorum: len(members)/2 + 1}",
			New:     "quorum: len(members) / 2}",
			FoundBy: []Finder{{"quorumlock", "TestNoQuorum"}, {"quorumlock", "TestHistories"}},
		},
		{
			Name: "quorum-counts-all-acceptances", Invariant: "I2", File: "quorumlock/attempt_round.go",
			Breaks:  "Acceptances of a token that was proposed before count for the present one.",
			Old:     "if v.token != a.present.token {",
			New:     "if v.token == 0 {",
			FoundBy: []Finder{{"quorumlock", "TestLateVoteCountsForItsToken"}},
		},
		{
			Name: "quorum-counts-all-own", Invariant: "I6", File: "quorumlock/ballot_verdict.go",
			Breaks:  "A lease that members have with different tokens counts as one.",
			Old:     "case t.ownMost >= b.quorum:",
			New:     "case t.own >= b.quorum:",
			FoundBy: []Finder{{"quorumlock", "TestVerdict"}},
		},
		{
			Name: "quorum-counts-what-it-withdrew", Invariant: "I2", File: "quorumlock/attempt_undo.go",
			Breaks:  "Acceptances that were taken back for the sake of others count.",
			Old:     "\ta.ballot.yield(a.present.token)\n",
			New:     "",
			FoundBy: []Finder{{"quorumlock", "TestLeftoverIsNoLease"}},
		},
		{
			Name: "quorum-does-not-look-again", Invariant: "I7", File: "quorumlock/attempt.go",
			Breaks:  "An attempt that gave way does not hear the members that are slow.",
			Old:     "case v == giveWay && !a.gaveWay:",
			New:     "case v == giveWay && a.gaveWay:",
			FoundBy: []Finder{{"quorumlock", "TestLeftoverIsNoLease"}},
		},
		{
			Name: "quorum-follows-the-furthest", Invariant: "I2", File: "quorumlock/ballot_token.go",
			Breaks:  "The next token follows the member whose clock is furthest ahead.",
			Old:     "if candidate.token <= near[0].token+uint64(guessLead.Microseconds()) {",
			New:     "if candidate.token > 0 {",
			FoundBy: []Finder{{"quorumlock", "TestNextToken"}, {"quorumlock", "TestWrongClockInCompany"}},
		},
		{
			Name: "quorum-no-quarantine", Invariant: "I1", File: "memlock/member.go",
			Breaks:  "A member that lost its data grants at once, beside the leases that it has forgotten.",
			Old:     "if left := m.remainingLocked(now, req.Quarantine); left > 0 {",
			New:     "if left := m.remainingLocked(now, req.Quarantine); left > 0 && left < 0 {",
			FoundBy: []Finder{{"quorumlock", "TestEmptyRestart"}, {"memlock", "TestMember"}},
		},
		{
			Name: "redis-member-no-quarantine", Invariant: "I1", File: "rediscore/internal/lua/member.lua",
			Breaks:  "A Redis server of a quorum that lost its data grants at once, beside the leases that it has forgotten.",
			Old:     "return math.max(ends - now, 0)",
			New:     "return 0",
			FoundBy: []Finder{{"redislock", "TestMemberFlush"}},
		},
		{
			Name: "quorum-withdrawn-token-accepted", Invariant: "I4", File: "memlock/member.go",
			Breaks:  "A member accepts a token that was withdrawn before it came.",
			Old:     "l.lastToken = max(l.lastToken, req.Token|1)\n\t}",
			New:     "}",
			FoundBy: []Finder{{"memlock", "TestMember"}},
		},
		{
			Name: "quorum-repairs-without-majority", Invariant: "I4", File: "quorumlock/extend_repair.go",
			Breaks:  "A lease that most members have lost is given back to them.",
			Old:     "most < x.quorum || lease.token == 0 ||",
			New:     "most < 1 || lease.token == 0 ||",
			FoundBy: []Finder{{"quorumlock", "TestNoRepairWithoutMajority"}},
		},
		{
			Name: "quorum-late-grant-used", Invariant: "I3", File: "quorumlock/attempt.go",
			Breaks:  "A lease that may be over by the time that the last answer comes is granted.",
			Old:     "if took := time.Since(a.began); tooLate(took, a.req.TTL) {",
			New:     "if took := time.Since(a.began); took < 0 {",
			FoundBy: []Finder{{"quorumlock", "TestTooLate"}},
		},
		{
			Name: "quorum-second-token-beside-a-lease", Invariant: "I6", File: "quorumlock/ballot_verdict.go",
			Breaks:  "A repeat gets a new token although members that do not answer may have granted the first.",
			Old:     "t.ownMost+t.unseen >= b.quorum",
			New:     "t.ownMost >= b.quorum",
			FoundBy: []Finder{{"quorumlock", "TestVerdict"}},
		},
		{
			Name: "quorum-janitor-tells-once", Invariant: "I5", File: "quorumlock/janitor.go",
			Breaks:  "A member that is down when a lease is withdrawn is not told when it is back.",
			Old:     "j.done(w, answered)",
			New:     "j.done(w, true)",
			FoundBy: []Finder{{"quorumlock", "TestReleaseIsFinished"}},
		},
		{
			Name: "quorum-equal-clocks-are-one", File: "quorumlock/diagnose.go",
			Breaks:  "Clocks that agree to the microsecond are reported as too few to compare.",
			Old:     "if len(clocks) < 2 {",
			New:     "if len(clocks) < 2 || clocks[0].Measures[\"offset\"] == clocks[1].Measures[\"offset\"] {",
			FoundBy: []Finder{{"quorumlock", "TestDiagnose"}},
		},
	}...)
}
