package mutant

// formsMutants are faults of the forms that run work under a lock, and of what they say.
func formsMutants() []Mutant {
	return []Mutant{
		{
			Name: "trydo-waits", Invariant: "", File: "do.go",
			Breaks:  "TryDo waits for a lock that somebody else has.",
			Old:     "call(ctx, c, name, opts, false, withoutValue(work))",
			New:     "call(ctx, c, name, opts, true, withoutValue(work))",
			FoundBy: []Finder{{".", "TestTryDoSkipsAtOnce"}},
		},
		{
			Name: "nil-work-is-run", Invariant: "", File: "do.go",
			Breaks:  "Work that is nil is found out when the lock has been taken, by a panic.",
			Old:     "if work == nil {\n\t\treturn v, opError",
			New:     "if false {\n\t\treturn v, opError",
			FoundBy: []Finder{{".", "TestNoWork"}},
		},
	}
}
