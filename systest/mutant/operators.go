package mutant

// operatorMutants are faults of the commands for operators: bench, wait, watch.
func operatorMutants() []Mutant {
	const bench = "cmd/holdfast/internal/bench"
	return []Mutant{
		{
			Name: "bench-leaves-locks", Invariant: "I5", File: bench + "/bench.go",
			Breaks:  "bench ends, and the leases that it has kept alive are still there.",
			Old:     "tidy(ctx, client) // which",
			New:     "_ = client // which",
			FoundBy: []Finder{{bench, "TestRun"}},
		},
		{
			Name: "bench-takes-other-names", File: bench + "/bench.go",
			Breaks:  "bench measures under a name that somebody else may use.",
			Old:     "fmt.Sprintf(\"%s%d\", b.prefix, i)",
			New:     "fmt.Sprintf(\"%s%d\", Prefix, i)",
			FoundBy: []Finder{{bench, "TestRun"}},
		},
		{
			Name: "bench-ignores-signals", File: "cmd/holdfast/internal/cli/bench.go",
			Breaks:  "A signal ends bench at once, and what it holds stays until its TTL.",
			Old:     "signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)",
			New:     "_ = signals",
			FoundBy: []Finder{{"cmd/holdfast", "TestBench"}},
		},
	}
}
