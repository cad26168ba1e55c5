package mutant

// metricsMutants are faults of what is measured: tally, promlock and otellock.
func metricsMutants() []Mutant {
	return []Mutant{
		{
			Name: "missed-runs-count-as-one", Invariant: "", File: "observe/tally/count.go",
			Breaks:  "Three runs that were missed together count as one.",
			Old:     `return Runs, "missed", max(e.Count, 1)`,
			New:     `return Runs, "missed", 1`,
			FoundBy: []Finder{{"promlock", "TestText"}},
		},
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
			Old:     "wanted(b.family, b.group)",
			New:     "_ = b",
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
		{
			Name: "series-begins-with-one", Invariant: "", File: "promlock/metrics.go",
			Breaks:  "The first loss of a process cannot be seen as an increase.",
			Old:     "if noted.First {",
			New:     "if noted.First && noted.N == 0 {",
			FoundBy: []Finder{{"promlock", "TestText"}},
		},
		{
			Name: "lease-id-in-a-span", Invariant: "I4", File: "otellock/spans.go",
			Breaks:  "Whoever can read traces can release locks.",
			Old:     "h.span.SetAttributes(keyToken.Int64(int64(e.Token)))",
			New:     "h.span.SetAttributes(keyToken.String(string(e.LeaseID)))",
			FoundBy: []Finder{{"systest/oteltest", "TestLoneAcquire"}, {"systest/oteltest", "TestOnceReplay"}},
		},
		{
			Name: "span-stays-open-after-loss", Invariant: "", File: "otellock/spans.go",
			Breaks:  "The span of a lease that was lost never ends.",
			Old:     `s.endHold(e, h, "lost")`,
			New:     `delete(s.holds, e.LeaseID)`,
			FoundBy: []Finder{{"systest/oteltest", "TestLostAtDeadline"}, {"systest/oteltest", "TestLostBroken"}},
		},
		{
			Name: "loss-is-not-an-error", Invariant: "", File: "otellock/spans.go",
			Breaks:  "The span of a lease that was lost looks like that of one that was released.",
			Old:     `h.span.SetStatus(codes.Error, "lost: "+cause)`,
			New:     `h.span.SetStatus(codes.Ok, "lost: "+cause)`,
			FoundBy: []Finder{{"systest/oteltest", "TestLostBroken"}},
		},
		{
			Name: "no-link-to-the-holder-before", Invariant: "", File: "otellock/spans.go",
			Breaks:  "A wait does not lead to the trace of whoever had the lock.",
			Old:     "w.linked = parent\n\t\taddLinks(w.span, to)",
			New:     "w.linked = parent",
			FoundBy: []Finder{{"systest/oteltest", "TestHandOver"}, {"systest/oteltest", "TestRefused"}},
		},
		{
			Name: "labels-of-the-caller-change", Invariant: "", File: "otellock/link.go",
			Breaks:  "The engine that writes spans into the store changes the labels that the caller has given.",
			Old:     "labels := maps.Clone(h.Labels)",
			New:     "_, labels := maps.Clone(h.Labels), h.Labels",
			FoundBy: []Finder{{"systest/oteltest", "TestTraceParent"}},
		},
	}
}
