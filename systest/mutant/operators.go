package mutant

// operatorMutants are faults of the commands for operators: bench, wait, watch.
func operatorMutants() []Mutant {
	const (
		bench   = "cmd/holdfast/internal/bench"
		polling = "cmd/holdfast/internal/polling"
		watch   = "cmd/holdfast/internal/watch"
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
		{
			Name: "watch-loads-the-store", File: watch + "/rounds.go",
			Breaks:  "Where a list takes long, watch asks for the next one at once.",
			Old:     "max(shortest-took, (share-1)*took)",
			New:     "max(shortest-took, 0)",
			FoundBy: []Finder{{watch, "TestRounds"}},
		},
		{
			Name: "watch-hangs-with-the-store", File: watch + "/rounds.go",
			Breaks:  "watch does not notice that a store hangs in the middle of a list.",
			Old:     "		r.probe(ctx, cancel)",
			New:     "		<-ctx.Done()",
			FoundBy: []Finder{{watch, "TestRoundsOutage"}},
		},
		{
			Name: "watch-ends-with-an-outage", File: watch + "/rounds.go",
			Breaks:  "A store that is away for a moment ends watch.",
			Old:     "case err != nil && !errors.Is(err, driver.ErrUnavailable):",
			New:     "case err != nil:",
			FoundBy: []Finder{{watch, "TestRoundsOutage"}, {"cmd/holdfast", "TestWatchOutage"}},
		},
		{
			Name: "watch-tells-of-renewals", File: watch + "/changes.go",
			Breaks:  "Each renewal is told as a change.",
			Old:     "g.Token == h.Token && g.Permits == h.Permits",
			New:     "g.Token == h.Token && g.ExpiresIn == h.ExpiresIn && g.Permits == h.Permits",
			FoundBy: []Finder{{watch, "TestChanges"}},
		},
		{
			Name: "watch-misses-hand-overs", File: watch + "/changes.go",
			Breaks:  "A lock that goes from one holder to the next is not told.",
			Old:     "return g.LeaseID == h.LeaseID && g.Token == h.Token",
			New:     "return g.Foreign() == h.Foreign()",
			FoundBy: []Finder{{watch, "TestChanges"}, {"cmd/holdfast", "TestScripts/watch"}},
		},
		{
			Name: "watch-obeys-names", File: watch + "/table.go",
			Breaks:  "A terminal obeys what somebody has hidden in the name of a lock.",
			Old:     "row[name], row[holder] = render.Plain(lock.Name)",
			New:     "row[name], row[holder] = lock.Name",
			FoundBy: []Finder{{watch, "TestTable"}},
		},
		{
			Name: "watch-keeps-the-terminal", File: "cmd/holdfast/internal/cli/watch_table.go",
			Breaks:  "After watch the shell has a terminal that draws no keys.",
			Old:     "	if s.restore != nil {\n		s.restore()",
			New:     "	if s.restore != nil {\n		_ = s.restore",
			FoundBy: []Finder{{"cmd/holdfast", "TestWatchTable/ctrl-c"}},
		},
		{
			Name: "watch-stops-on-the-other-screen", File: "cmd/holdfast/internal/cli/watch_table.go",
			Breaks:  "Ctrl-Z gives the shell the screen of watch.",
			Old:     "		s.leave()\n		s.screen.Stop(signals)",
			New:     "		s.screen.Stop(signals)",
			FoundBy: []Finder{{"cmd/holdfast", "TestWatchTable/suspend"}},
		},
	}
}
