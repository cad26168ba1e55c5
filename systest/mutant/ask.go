package mutant

// askMutants are faults of how requests are repeated, and of what a request that
// failed is said to have done.
func askMutants() []Mutant {
	return []Mutant{
		{
			Name: "unknown-taken-for-certain", Invariant: "I10", File: "driver/errors.go",
			Breaks:  "An error that leaves the outcome open is taken for one that says that nothing was done.",
			Old:     "bool { return Class(err) != nil }",
			New:     "bool { return err != nil }",
			FoundBy: []Finder{{".", "TestUnheardGrantIsCancelled"}, {".", "TestExtendErrors"}, {"driver", "TestClass"}},
		},
		{
			Name: "outage-taken-for-permanent", Invariant: "I10", File: "driver/errors.go",
			Breaks:  "A store that cannot be reached for now is given up at once.",
			Old:     "return class != nil && class != ErrUnavailable",
			New:     "return class != nil",
			FoundBy: []Finder{{"driver", "TestClass"}, {".", "TestWaiterRidesOutOutage"}, {"internal/ask", "TestUntil"}},
		},
		{
			Name: "outage-hides-what-is-permanent", Invariant: "I10", File: "driver/errors.go",
			Breaks:  "Of an error that says both, that the store is unavailable and why that will not change, only the first is seen.",
			Old:     "\tfor _, class := range definite {",
			New:     "\tif errors.Is(err, ErrUnavailable) {\n\t\treturn ErrUnavailable\n\t}\n\tfor _, class := range definite {",
			FoundBy: []Finder{{"driver", "TestClass"}},
		},
		{
			Name: "complete-is-not-repeated", Invariant: "I6", File: "internal/ask/until.go",
			Breaks:  "A request whose first copy gets no answer is not sent again, so that a result is not stored.",
			Old:     "case backoff.Sleep(ctx):",
			New:     "case backoff.Sleep(ctx) && f.last == nil:",
			FoundBy: []Finder{{".", "TestCompleteIsRepeated"}, {"internal/ask", "TestUntil"}},
		},
		{
			Name: "permanent-is-asked-again", File: "internal/ask/until.go",
			Breaks:  "A request that the store refuses for good is repeated until its time is over.",
			Old:     "case driver.Permanent(f.last):",
			New:     "case driver.Permanent(f.last) && f.last == nil:",
			FoundBy: []Finder{{"internal/ask", "TestUntil"}},
		},
		{
			Name: "one-request-has-all-the-time", File: "internal/ask/until.go",
			Breaks:  "A request that gets lost uses up the time of all its repeats.",
			Old:     "return UntilEnd(ctx, timeout/Tries, send)",
			New:     "return UntilEnd(ctx, timeout, send)",
			FoundBy: []Finder{{"internal/ask", "TestUntil"}, {".", "TestCompleteIsRepeated"}},
		},
		{
			Name: "last-refusal-settles-the-doubt", Invariant: "I10", File: "internal/ask/until.go",
			Breaks:  "A request that may have been carried out unseen is said not to have been, because its last copy was refused.",
			Old:     "case f.doubt != nil && !f.Lost():",
			New:     "case f.doubt != nil && !driver.Definite(f.last):",
			FoundBy: []Finder{{"internal/ask", "TestUntil"}, {"onetime", "TestDoubtRemains"}},
		},
		{
			Name: "doubt-outlives-the-answer", Invariant: "I10", File: "internal/ask/until.go",
			Breaks:  "The store's word that a lease is not live is taken for no answer, if a request before it got none.",
			Old:     "case f.doubt != nil && !f.Lost():",
			New:     "case f.doubt != nil:",
			FoundBy: []Finder{{"internal/ask", "TestUntil"}},
		},
		{
			Name: "asked-under-an-ended-context", File: "internal/ask/until.go",
			Breaks:  "A request is sent although its caller has gone.",
			Old:     "\tif ended(ctx) {\n",
			New:     "\tif false {\n",
			FoundBy: []Finder{{"internal/ask", "TestUntilSendsNothing"}},
		},
		{
			Name: "callers-end-taken-for-an-outage", Invariant: "I10", File: "internal/ask/ask.go",
			Breaks:  "The end of the caller's context is told as a store that is unavailable.",
			Old:     "\tcase ended(ctx):\n",
			New:     "\tcase false:\n",
			FoundBy: []Finder{{"internal/ask", "TestClasses"}},
		},
		{
			Name: "own-limit-taken-for-the-callers", Invariant: "I10", File: "internal/ask/ask.go",
			Breaks:  "A request timeout is told as the end of the caller's context.",
			Old:     "return context.Cause(ctx) == ErrNoAnswer",
			New:     "return context.Cause(ctx) == nil",
			FoundBy: []Finder{{"internal/ask", "TestClasses"}, {"internal/ask", "TestUntilEnd"}},
		},
		{
			Name: "back-off-in-step", File: "internal/ask/backoff.go",
			Breaks:  "Those who failed together come back together.",
			Old:     "return b.last/2 + rand.N(b.last/2+1)",
			New:     "return b.last/2 + rand.N(b.last/2+1)/time.Hour",
			FoundBy: []Finder{{"internal/ask", "TestBackoff"}},
		},
	}
}
