package mutant

// metricsMutants are faults of what is measured: tally, promlock and otellock.
func metricsMutants() []Mutant {
	return []Mutant{
		{
			Name: "loss-has-no-cause", Invariant: "I10", File: "lease_loss.go",
			Breaks:  "A lease that could not be renewed counts as one that the store has taken away.",
			Old:     `{errExpired, "deadline"}, `,
			New:     ``,
			FoundBy: []Finder{{".", "TestLossCause/deadline"}},
		},
		{
			Name: "gauge-stays-after-loss", Invariant: "", File: "observe/tally/tally.go",
			Breaks:  "A lease that was lost counts as held for ever.",
			Old:     "case e.EndsHold():",
			New:     "case e.EndsHold() && e.Err == nil:",
			FoundBy: []Finder{{"observe/tally", "TestNow/lost"}},
		},
		{
			Name: "gauge-vanishes", Invariant: "", File: "observe/tally/tally.go",
			Breaks:  "A gauge is not 0 after the last wait or possession, but gone.",
			Old:     "t.known[m.Group] = struct{}{}",
			New:     "_ = t.known",
			FoundBy: []Finder{{"observe/tally", "TestGroups"}},
		},
		{
			Name: "labels-without-limit", Invariant: "I11", File: "observe/tally/names.go",
			Breaks:  "There are as many labels as names.",
			Old:     "if known || !full && n.add(",
			New:     "if known || full || n.add(",
			FoundBy: []Finder{{"observe/tally", "TestNamesAreBounded"}},
		},
		{
			Name: "numbers-stay-in-labels", Invariant: "I11", File: "observe/tally/fold.go",
			Breaks:  "The number of an order is a part of its label.",
			Old:     "return number(s)\n",
			New:     "return 0\n",
			FoundBy: []Finder{{"observe/tally", "TestFold"}},
		},
	}
}
