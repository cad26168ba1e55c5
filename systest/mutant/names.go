package mutant

// namesMutants are faults of runs with several names, and of what run and once are
// told on the command line.
func namesMutants() []Mutant {
	const runner, cli = "cmd/holdfast/internal/runner", "cmd/holdfast/internal/cli"
	return []Mutant{
		{
			Name: "run-watches-its-first-name-only", Invariant: "I3", File: "cmd/holdfast/internal/runner/hold.go",
			Breaks:  "The loss of the second of several locks is not noticed, and its command goes on.",
			Old:     "h := hold{term: all}",
			New:     "h := hold{term: all.Lease(names[0])}",
			FoundBy: []Finder{{runner, "TestLossOfOneIsLossOfAll"}, {runner, "TestHoldEndsWithTheFirst"}, {command, "TestScripts/names"}},
		},
		{
			Name: "run-kills-with-its-last-lock", Invariant: "I3", File: "acquire_all_leases.go",
			Breaks:  "A job with several locks has until the latest of their deadlines.",
			Old:     "first = earlier(first, l.Deadline())",
			New:     "if first.Before(l.Deadline()) {\n\t\t\tfirst = l.Deadline()\n\t\t}",
			FoundBy: []Finder{{runner, "TestHoldEndsWithTheFirst"}},
		},
		{
			Name: "run-takes-what-it-can-get", Invariant: "", File: "cmd/holdfast/internal/runner/runner.go",
			Breaks:  "Of several names the run takes the first, and goes on without the others.",
			Old:     "if len(j.Names) > 1 {",
			New:     "if len(j.Names) > 128 {",
			FoundBy: []Finder{{runner, "TestAllOrNone"}, {command, "TestScripts/names"}},
		},
		{
			Name: "run-blames-its-first-name", Invariant: "I10", File: "cmd/holdfast/internal/runner/hold.go",
			Breaks:  "When one of several locks is lost, the message and the event name another.",
			Old:     "return l, cause\n",
			New:     "return h.first(), cause\n",
			FoundBy: []Finder{{runner, "TestLossOfOneIsLossOfAll"}},
		},
		{
			Name: "run-takes-flags-of-the-command", Invariant: "", File: "cmd/holdfast/internal/cli/run_words.go",
			Breaks:  "Words behind the name that begin with a dash are run's without a -- that says so.",
			Old:     "case flags.ArgsLenAtDash() == 0,",
			New:     "case true,",
			FoundBy: []Finder{{command, "TestScripts/flock"}, {command, "TestWrongInvocations"}},
		},
		{
			Name: "run-tells-arguments", Invariant: "", File: "cmd/holdfast/internal/cli/job.go",
			Breaks:  "Whoever may read the store reads the arguments of commands, passwords among them.",
			Old:     "render.Plain(filepath.Base(job.Path))",
			New:     "render.Plain(filepath.Base(job.Path) + fmt.Sprint(job.Args))",
			FoundBy: []Finder{{command, "TestScripts/program"}},
		},
		{
			Name: "once-calls-too-long-a-loss", Invariant: "I10", File: "cmd/holdfast/internal/runner/once.go",
			Breaks:  "A do-once command that was stopped by --max-hold is told as lost.",
			Old:     "own.Status == exit.Lost || own.Status == exit.MaxHold",
			New:     "own.Status == exit.Lost",
			FoundBy: []Finder{{runner, "TestOnceVerdict"}},
		},
		{
			Name: "once-has-its-own-status-of-busy", Invariant: "", File: "cmd/holdfast/internal/runner/once.go",
			Breaks:  "once -E is not heard.",
			Old:     "return exit.With(o.Busy, err)",
			New:     "return exit.With(exit.Busy, err)",
			FoundBy: []Finder{{runner, "TestOnceVerdict"}, {command, "TestScripts/once_letters"}},
		},
		{
			Name: "times-have-no-limit", Invariant: "", File: "cmd/holdfast/internal/duration/duration.go",
			Breaks:  "A time that is too long becomes another: a wait of 1e300 seconds is over at once.",
			Old:     "case seconds > longest:",
			New:     "case seconds > longest && false:",
			FoundBy: []Finder{{"cmd/holdfast/internal/duration", "TestParse"}, {command, "TestWrongInvocations"}},
		},
		{
			Name: "wrong-names-make-a-store", Invariant: "", File: "cmd/holdfast/internal/cli/args.go",
			Breaks:  "A name that cannot be is found wrong when a store was made for it.",
			Old:     "if err := driver.CheckName(name); err != nil {",
			New:     "if err := driver.CheckName(name); err != nil && false {",
			FoundBy: []Finder{{command, "TestWrongInvocations"}},
		},
	}
}
