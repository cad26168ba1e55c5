package mutant

// wholeMutants are faults of leases that are to have their whole TTL.
func wholeMutants() []Mutant {
	return []Mutant{
		{
			Name: "whole-ttl-is-not-asked-for", Invariant: "", File: "acquire_attempt.go",
			Breaks:  "A caller who wants a lease with its whole TTL is given what a hand-over left of the place.",
			Old:     "case w.opts.WholeTTL || w.opts.LockDelay > 0",
			New:     "case w.opts.LockDelay > 0",
			FoundBy: []Finder{{".", "TestWholeTTL"}, {".", "TestWholeTTLOfOnce"}, {"cmd/holdfast/internal/runner", "TestRunHasTheWholeTTL"}},
		},
		{
			Name: "whole-ttl-of-the-last-only", Invariant: "", File: "acquire_all.go",
			Breaks:  "Of several leases that are to have their whole TTL, only the last has it.",
			Old:     "(g.opts.KeepAlive == KeepAliveOff || g.opts.WholeTTL)",
			New:     "g.opts.KeepAlive == KeepAliveOff",
			FoundBy: []Finder{{".", "TestWholeTTLOfAll"}},
		},
		{
			Name: "run-begins-with-a-short-lease", Invariant: "I3", File: "cmd/holdfast/internal/runner/runner.go",
			Breaks:  "A command is started under a lease that may end before it can be stopped.",
			Old:     "\tj.Opts.WholeTTL = !j.Try\n",
			New:     "",
			FoundBy: []Finder{{"cmd/holdfast/internal/runner", "TestRunHasTheWholeTTL"}},
		},
		{
			Name: "once-begins-with-a-short-lease", Invariant: "I3", File: "cmd/holdfast/internal/runner/once.go",
			Breaks:  "A do-once command is started under a lease that may end before it can be stopped.",
			Old:     "WholeTTL: true, ",
			New:     "",
			FoundBy: []Finder{{"cmd/holdfast/internal/runner", "TestOnceHasTheWholeTTL"}},
		},
	}
}
