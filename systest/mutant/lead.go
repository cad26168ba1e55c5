package mutant

// leadMutants are faults of those who lead.
func leadMutants() []Mutant {
	return []Mutant{
		{
			Name: "lead-ends-before-the-work", Invariant: "I1", File: "lead.go",
			Breaks:  "A leader that is to stop hands over before its work has stopped.",
			Old:     "return fn(ctx, l)",
			New:     "defer context.AfterFunc(ctx, func() { _ = l.Release(context.Background()) })()\n\t\t\treturn fn(ctx, l)",
			FoundBy: []Finder{{".", "TestLeadIsHandedOverWhenWorkHasStopped"}},
		},
		{
			Name: "failed-leader-stands-at-once", Invariant: "", File: "lead.go",
			Breaks:  "A candidate whose work fails stands again without a pause.",
			Old:     "pause = again.Next(o.LongestPause)",
			New:     "_ = again.Next(o.LongestPause)",
			FoundBy: []Finder{{".", "TestLeadPausesAfterFailures"}, {".", "TestLeadStalls"}},
		},
		{
			Name: "stalled-leader-stands-at-once", Invariant: "", File: "lead.go",
			Breaks:  "A candidate that has stalled stands again without a pause.",
			Old:     "failed := !isLost(err) || errors.Is(err, ErrStalled)",
			New:     "failed := !isLost(err) || errors.Is(err, ErrHeld)",
			FoundBy: []Finder{{".", "TestLeadStalls"}},
		},
		{
			Name: "pauses-of-a-leader-never-shrink", Invariant: "", File: "lead.go",
			Breaks:  "A candidate that has led for long is away for as long as one that fails at once.",
			Old:     "if led >= o.LongestPause {",
			New:     "if led >= 100*o.LongestPause {",
			FoundBy: []Finder{{".", "TestLeadPausesAfterFailures"}},
		},
		{
			Name: "candidate-gives-up-in-an-outage", Invariant: "", File: "lead.go",
			Breaks:  "A candidate gives up for good when the store is away.",
			Old:     "driver.Permanent(err) && !isLost(err)",
			New:     "driver.Definite(err) && !isLost(err)",
			FoundBy: []Finder{{".", "TestLeadAndTheStore"}},
		},
		{
			Name: "lost-lead-is-told-without-a-cause", Invariant: "I10", File: "do.go",
			Breaks:  "Do says that its lease was lost, but not why.",
			Old:     "cmp.Or(l.lostBefore(), errors.Unwrap(released), ErrLost)",
			New:     "cmp.Or(ErrLost, l.lostBefore(), errors.Unwrap(released))",
			FoundBy: []Finder{{".", "TestLeadAgainAfterLoss"}, {".", "TestLossSaysWhy"}},
		},
	}
}
