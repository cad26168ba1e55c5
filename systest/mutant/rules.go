package mutant

// both returns the tests that find a fault of the rules: by comparing all small
// states with the invariants, and by what comes of everything that can happen.
func both(test string) []Finder {
	return []Finder{{"driver/rules", test}, {"driver/rules", "TestEveryHistory"}}
}

// rulesMutants are faults of what says who is granted a lock, for the engines
// in memory and on one file and for the model of the suite.
func rulesMutants() []Mutant {
	const file = "driver/rules/rules.go"
	return []Mutant{
		{
			Name: "exclusive-beside-shared", Invariant: "I1", File: file,
			Breaks:  "A writer is granted the lock beside readers, and a reader beside a writer.",
			Old:     "case n.Mode != v.Taken.Mode:\n\t\treturn false",
			New:     "case n.Mode != v.Taken.Mode:\n\t\treturn true",
			FoundBy: append(both("TestFits"), conformance("memlock", "ExclusiveKeepsSharedOut")),
		},
		{
			Name: "one-permit-too-many", Invariant: "I1", File: file,
			Breaks:  "A semaphore grants one permit more than its limit.",
			Old:     "v.Taken.Permits+n.Permits <= n.Limit",
			New:     "v.Taken.Permits+n.Permits <= n.Limit+1",
			FoundBy: append(both("TestFits"), conformance("memlock", "SemaphoreGrantsLimit")),
		},
		{
			Name: "limits-are-not-compared", Invariant: "I1", File: file,
			Breaks:  "Permits of semaphores with different limits are granted side by side.",
			Old:     "return n.Limit == v.Taken.Limit &&",
			New:     "return",
			FoundBy: []Finder{{"driver/rules", "TestFits"}},
		},
		{
			Name: "over-lease-counts", Invariant: "I1", File: file,
			Breaks:  "A lease whose expiry is this very instant still counts.",
			Old:     "if left <= 0 {",
			New:     "if left < 0 {",
			FoundBy: []Finder{{"driver/rules", "TestFits"}, {"driver/rules", "TestBlocker"}},
		},
		{
			Name: "permits-of-one-lease-count", Invariant: "I1", File: file,
			Breaks:  "Of several leases only the permits of the last are counted.",
			Old:     "v.Taken = Need{n.Mode, n.Limit, v.Taken.Permits + n.Permits}",
			New:     "v.Taken = n",
			FoundBy: both("TestFits"),
		},
		{
			Name: "last-lease-is-shown", Invariant: "I10", File: file,
			Breaks:  "Whoever is refused is told of the lease that was granted last, and when that ends.",
			Old:     "first = !v.Held || left < v.Left; first {",
			New:     "first = true; first {",
			FoundBy: []Finder{{"driver/rules", "TestBlocker"}},
		},
		{
			Name: "last-place-comes-first", Invariant: "I7", File: file,
			Breaks:  "The latest waiter is taken for the first.",
			Old:     "if left > 0 && !v.Queued {",
			New:     "if left > 0 {",
			FoundBy: both("TestDue"),
		},
		{
			Name: "dead-place-comes-first", Invariant: "I7", File: file,
			Breaks:  "A place that is over is served, and keeps those behind it waiting.",
			Old:     "if left > 0 && !v.Queued {",
			New:     "if !v.Queued {",
			FoundBy: []Finder{{"driver/rules", "TestDue"}},
		},
		{
			Name: "done-work-is-waited-for", Invariant: "I7", File: file,
			Breaks:  "Whoever waits for work that is done by now keeps its place.",
			Old:     "return once && v.Recorded }",
			New:     "return once && v.Recorded && v.Cancelled }",
			FoundBy: append(both("TestDue"), conformance("memlock", "CompleteTellsWatches")),
		},
		{
			Name: "waiters-have-no-kind", Invariant: "I12", File: file,
			Breaks:  "A name that only has waiters takes requests of another kind.",
			Old:     "return SameKind(v.Head, n)",
			New:     "return nil",
			FoundBy: []Finder{{"driver/rules", "TestKinds"}},
		},
		{
			Name: "limits-are-one-kind", Invariant: "I12", File: file,
			Breaks:  "A semaphore takes requests that name another limit.",
			Old:     "case counts && n.Limit != there.Limit:",
			New:     "case counts && n.Limit < there.Limit:",
			FoundBy: append(both("TestKinds"), conformance("memlock", "SemaphoreChecksKind")),
		},
		{
			Name: "repeat-judged-as-new", Invariant: "I6", File: file,
			Breaks:  "A repeat of a granted request is refused for the lease that it was granted.",
			Old:     "case v.Own:",
			New:     "case v.Own && v.Cancelled:",
			FoundBy: []Finder{{"driver/rules", "TestJudge"}, conformance("memlock", "RepeatIsGrantedAgain")},
		},
		{
			Name: "cancelled-request-judged", Invariant: "I5", File: file,
			Breaks:  "A request that was overtaken by its own cancel is granted.",
			Old:     "case v.Cancelled:",
			New:     "case v.Cancelled && v.Own:",
			FoundBy: []Finder{{"driver/rules", "TestJudge"}, conformance("memlock", "CancelStopsLateAcquire")},
		},
		{
			Name: "new-request-passes-queue", Invariant: "I7", File: file,
			Breaks:  "A new request that fits is granted in front of those who wait.",
			Old:     "return !v.Queued && v.Fits(n) }",
			New:     "return v.Fits(n) }",
			FoundBy: both("TestJudge"),
		},
		{
			Name: "head-served-beside-others", Invariant: "I1", File: file,
			Breaks:  "The first of the queue is granted the lock although it does not fit beside the live leases.",
			Old:     "!v.GivesUp(v.HeadOnce) && v.Fits(v.Head) }",
			New:     "!v.GivesUp(v.HeadOnce) }",
			FoundBy: []Finder{{"driver/rules", "TestDue"}},
		},
		{
			Name: "done-work-is-served", Invariant: "I7", File: file,
			Breaks:  "Whoever waits for work that is done by now is granted the lock.",
			Old:     "return v.Queued && !v.GivesUp(v.HeadOnce) && v.Fits(v.Head) }",
			New:     "return v.Queued && v.Fits(v.Head) }",
			FoundBy: []Finder{{"driver/rules", "TestDue"}},
		},
		{
			Name: "mem-member-grants-held-name", Invariant: "I1", File: "memlock/member.go",
			Breaks:  "A quorum is granted a member's lock that somebody else has.",
			Old:     "own == nil && !v.Free(quorumNeed())",
			New:     "own == nil && !v.Free(quorumNeed()) && !v.Held",
			FoundBy: []Finder{{"memlock", "TestMember"}},
		},
		{
			Name: "mem-member-repairs-held-name", Invariant: "I1", File: "memlock/member.go",
			Breaks:  "A lease of a quorum is recorded anew on a member on which somebody else has the lock.",
			Old:     "return v.Free(quorumNeed())",
			New:     "return v.Free(quorumNeed()) || v.Held",
			FoundBy: []Finder{{"memlock", "TestMember"}},
		},
	}
}
