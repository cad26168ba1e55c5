package mutant

// operatorMutants are faults of the commands for operators: bench, wait, watch.
func operatorMutants() []Mutant {
	const (
		bench   = "cmd/holdfast/internal/bench"
		polling = "cmd/holdfast/internal/polling"
	)
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
		{
			Name: "wait-asks-all-the-time", File: polling + "/polling.go",
			Breaks:  "Those who wait for long go on asking as often as at first.",
			Old:     "min(max(waited/10, shortest), longest)",
			New:     "min(max(waited/10000, shortest), longest)",
			FoundBy: []Finder{{polling, "TestManyAskSeldom"}},
		},
		{
			Name: "wait-asks-in-step", File: polling + "/polling.go",
			Breaks:  "All who have begun to wait together ask together.",
			Old:     "(2*rand.Float64() - 1) * jitter",
			New:     "(2*rand.Float64() - 1) * 0 * jitter",
			FoundBy: []Finder{{polling, "TestManyAskSeldom"}},
		},
		{
			Name: "wait-ends-beside-a-queue", File: polling + "/polling.go",
			Breaks:  "wait says that a lock is free that is being handed over.",
			Old:     "len(lock.Holders) == 0 && lock.QueueLength == 0",
			New:     "len(lock.Holders) == 0",
			FoundBy: []Finder{{polling, "TestOutage"}},
		},
		{
			Name: "wait-ends-with-an-outage", File: polling + "/polling.go",
			Breaks:  "A store that is away for a moment ends a wait that has begun.",
			Old:     "|| first && w.Until.IsZero())",
			New:     "|| w.Until.IsZero())",
			FoundBy: []Finder{{polling, "TestOutage"}, {"cmd/holdfast", "TestWaitOutage"}},
		},
		{
			Name: "wait-takes-the-lock", File: "cmd/holdfast/internal/cli/wait.go",
			Breaks:  "wait takes the lock that it has waited for, and a token with it.",
			Old:     "		lock, err := c.Inspect(ctx, name)\n		if err != nil {\n			return nil, err\n		}\n		for",
			New:     "		lock, err := c.Inspect(ctx, name)\n		if err != nil {\n			return nil, err\n		}\n		if len(lock.Holders) == 0 {\n			_, _ = c.TryAcquire(ctx, name, nil)\n		}\n		for",
			FoundBy: []Finder{{"cmd/holdfast", "TestWait"}},
		},
		{
			Name: "wait-for-itself", File: "cmd/holdfast/internal/cli/wait.go",
			Breaks:  "wait inside a run of the same name waits for ever.",
			Old:     "l.Name == name && l.Token == h.Token",
			New:     "l.Name == name && l.Token == h.Token+1",
			FoundBy: []Finder{{"cmd/holdfast", "TestScripts/wait"}},
			Hang:    true,
		},
	}
}
