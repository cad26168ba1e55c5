package mutant

// startMutants are faults that make the start of a program dear.
func startMutants() []Mutant {
	return []Mutant{
		{
			Name: "scripts-are-all-made-at-once", Invariant: "", File: "rediscore/internal/lua/lua.go",
			Breaks:  "An engine puts all its scripts together when it is made: that costs a short program more than its requests.",
			Old:     "s := later(func() string { return l.places().Replace(k.read(pieces)) })",
			New:     "s := New(l.places().Replace(k.read(pieces)))",
			FoundBy: []Finder{{"rediscore/internal/lua", "TestScriptsAreMadeWhenNeeded"}},
		},
		{
			Name: "program-has-templates", Invariant: "", File: "cmd/holdfast/internal/cli/cli.go",
			Breaks:  "The version is printed by a template: the linker keeps every method, and the program is almost twice as large.",
			Old:     "root.Flags().BoolVarP(&version,",
			New:     "root.SetVersionTemplate(\"{{.Version}}\\n\")\n\troot.Flags().BoolVarP(&version,",
			FoundBy: []Finder{{command, "TestProgramHasNoTemplates"}},
		},
		{
			Name: "program-prepares-a-table", Invariant: "", File: "stores/open.go",
			Breaks:  "A package makes a large table before main, in every command and in every warden.",
			Old:     "const supported =",
			New:     "var table = strings.Repeat(\"x\", 1<<20)\n\nconst supported =",
			FoundBy: []Finder{{command, "TestInitIsSmall"}},
		},
		{
			Name: "redis-connection-asks-for-a-cache", Invariant: "", File: "redislock/parse_url.go",
			Breaks:  "Each connection begins with commands that nobody needs.",
			Old:     "DisableCache:     true, //",
			New:     "DisableCache:     false, //",
			FoundBy: []Finder{{command, "TestRunIsTwoRequests"}},
		},
		{
			Name: "run-waits-until-its-warden-is-forked", Invariant: "", File: "cmd/holdfast/internal/supervise/tree.go",
			Breaks:  "The store is opened after the fork of the warden, not beside it.",
			Old:     "go func() { // ends when the warden has begun",
			New:     "func() { // ends when the warden has begun",
			FoundBy: []Finder{{"cmd/holdfast/internal/supervise", "TestPrepareDoesNotWait"}},
		},
		{
			Name: "run-starts-its-warden-last", Invariant: "", File: "cmd/holdfast/internal/cli/run.go",
			Breaks: "The warden is started when the store was opened, not beside it.",
			Old: "job.Start = supervise.Prepare(nil) // it starts while the store is opened and the lock acquired\n" +
				"\tdefer job.Start.Close()\n\treturn a.work(ctx, &f.jobFlags, job, func() error { return",
			New: "return a.work(ctx, &f.jobFlags, job, func() error {\n" +
				"\t\tjob.Start = supervise.Prepare(nil)\n\t\tdefer job.Start.Close()\n\t\treturn",
			FoundBy: []Finder{{command, "TestWardenStartsBesideTheStore"}},
		},
		{
			Name: "run-lists-its-children-for-nothing", Invariant: "", File: "cmd/holdfast/internal/supervise/job_linux.go",
			Breaks:  "A holdfast without children looks for them in the lists of all its threads.",
			Old:     "return errors.Is(err, unix.ECHILD) && os.Getpid() != 1",
			New:     "return errors.Is(err, unix.ECHILD) && os.Getpid() == 1",
			FoundBy: []Finder{{"cmd/holdfast/internal/supervise", "TestIsChildless"}},
		},
		{
			Name: "run-takes-itself-for-childless", Invariant: "", File: "cmd/holdfast/internal/supervise/tree.go",
			Breaks:  "Children that holdfast had before are not looked for, and end with the job of a warden that was killed.",
			Old:     "if !s.alone {",
			New:     "if false {",
			FoundBy: []Finder{{command, "TestEarlierChildrenLiveOn"}},
		},
		{
			Name: "sqlite-short-engines-never-sweep", Invariant: "I11", File: "sqlitelock/open.go",
			Breaks:  "Where each process takes one lock and ends, as holdfast run does, nothing that is over is ever forgotten.",
			Old:     "added: rand.IntN(sweepEvery)}",
			New:     "added: rand.IntN(sweepEvery) * 0}",
			FoundBy: []Finder{{"sqlitelock", "TestShortEnginesSweep"}},
		},
		{
			Name: "sqlite-short-engines-always-sweep", Invariant: "", File: "sqlitelock/open.go",
			Breaks:  "Each command that takes a lock in a file sweeps the file first, which takes longer than the lock.",
			Old:     "added: rand.IntN(sweepEvery)}",
			New:     "added: rand.IntN(sweepEvery)*0 + sweepEvery - 1}",
			FoundBy: []Finder{{"sqlitelock", "TestShortEnginesSweep"}},
		},
	}
}
