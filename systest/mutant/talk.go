package mutant

// talkMutants are faults of what a run says while it waits, of its end by a signal, and
// of the result that it reports.
func talkMutants() []Mutant {
	const cli, runner = "cmd/holdfast/internal/cli/", "cmd/holdfast/internal/runner/"
	return []Mutant{
		{
			Name: "result-only-of-what-went-well", Invariant: "", File: cli + "job.go",
			Breaks:  "A run that fails reports no result.",
			Old:     "status.End(job.Names, err)",
			New:     "if err == nil {\n\t\tstatus.End(job.Names, err)\n\t}",
			FoundBy: []Finder{{command, "TestResult"}, {command, "TestResultOfWhatHappens"}},
		},
		{
			Name: "result-not-of-wrong-flags", Invariant: "", File: cli + "job.go",
			Breaks:  "A run with a flag that does not exist reports no result.",
			Old:     "return f.reportTo(cmd, &runner.Job{}, func(*runner.Status) error { return flagError(cmd, err) })",
			New:     "return flagError(cmd, err)",
			FoundBy: []Finder{{command, "TestResult/wrong_flag"}},
		},
		{
			Name: "result-of-busy-by-its-status", Invariant: "", File: runner + "status.go",
			Breaks:  "That somebody else has the lock is reported as something else if -E gives it another status.",
			Old:     "case errors.Is(e, holdfast.ErrHeld), errors.Is(e, holdfast.ErrInProgress): // with -E it has any status",
			New:     "case e.Status == exit.Busy:",
			FoundBy: []Finder{{command, "TestResult/busy,_own_status"}, {command, "TestResult/busy_as_success"}},
		},
		{
			Name: "run-opens-its-store-uninterrupted", Invariant: "", File: cli + "job.go",
			Breaks:  "A signal that comes while the store is away ends the run without a result.",
			Old:     "a.opener = unlessEnded(job.Signals, a.open)",
			New:     "",
			FoundBy: []Finder{{command, "TestResultOfWhatHappens/ended_while_the_store_is_away"}},
			Hang:    true,
		},
		{
			Name: "wait-keeps-its-place", Invariant: "", File: cli + "cli.go",
			Breaks:  "A run that a signal ends while it waits does not give up its place.",
			Old:     "case !e.EndBy.IsZero():\n\t\treturn time.Until(e.EndBy)",
			New:     "case !e.EndBy.IsZero():\n\t\treturn 0",
			FoundBy: []Finder{{command, "TestWaitEndsSoon"}},
		},
		{
			Name: "wait-ends-late", Invariant: "", File: runner + "interrupt.go",
			Breaks:  "A run that a signal ends while it waits takes a second if the store hangs.",
			Old:     "const endWithin = 50 * time.Millisecond",
			New:     "const endWithin = time.Second",
			FoundBy: []Finder{{command, "TestWaitEndsSoonWithoutTheStore"}},
		},
		{
			Name: "wait-leaves-a-late-lease", Invariant: "I5", File: runner + "runner.go",
			Breaks:  "A lease that is granted when a signal has ended the wait is not released.",
			Old:     "if err == nil {\n\t\t\tctx, cancel := context.WithDeadline(ctx, ended.EndBy)",
			New:     "if false {\n\t\t\tctx, cancel := context.WithDeadline(ctx, ended.EndBy)",
			FoundBy: []Finder{{runner, "TestLateLeaseIsReleased"}},
		},
		{
			Name: "wait-blames-a-busy-store", Invariant: "I10", File: "acquire_outage.go",
			Breaks:  "A short wait that ends while the store is thinking ends as an outage, although the store has just said who has the lock.",
			Old:     "min(outageShortest, max(silenceShortest, waited/2))",
			New:     "min(outageShortest, waited/2)",
			FoundBy: []Finder{{".", "TestShortWaitOnABusyStore"}},
		},
		{
			Name: "line-in-a-pipe", Invariant: "", File: cli + "waiting.go",
			Breaks:  "The line of a wait is drawn into pipes and files as well.",
			Old:     "a.messages = linewriter.New(stderr)\n\t\treturn",
			New:     "a.screen = &terminal.Terminal{}\n\t\ta.messages = linewriter.NewTerminal(stderr, func() bool { return true })\n\t\treturn",
			FoundBy: []Finder{{command, "TestWaitingWithoutColours"}},
		},
		{
			Name: "line-on-a-dumb-terminal", Invariant: "", File: "cmd/holdfast/internal/terminal/terminal.go",
			Breaks:  "The line of a wait is drawn where TERM says that nothing can be rewritten.",
			Old:     `if name == "" || name == "dumb" {`,
			New:     `if name == "" {`,
			FoundBy: []Finder{{command, "TestWaitingWithoutColours"}},
		},
		{
			Name: "line-on-the-screen-of-others", Invariant: "", File: "cmd/holdfast/internal/linewriter/linewriter.go",
			Breaks:  "A job in the background draws on the screen of whoever is in the foreground, and is stopped for it.",
			Old:     `b.last == "" && drawn == "" || !o.ours() {`,
			New:     `b.last == "" && drawn == "" {`,
			FoundBy: []Finder{{"cmd/holdfast/internal/linewriter", "TestSomebodyElsesScreen"}, {command, "TestWaitingInTheBackground"}},
		},
		{
			Name: "line-beside-the-command", Invariant: "", File: runner + "runner.go",
			Breaks:  "The line of a wait is still on the screen when the command starts.",
			Old:     "\tj.Line.End()\n",
			New:     "",
			FoundBy: []Finder{{command, "TestWaitingLine/run_job"}},
		},
		{
			Name: "line-stays-when-stopped", Invariant: "", File: "cmd/holdfast/internal/waitline/line.go",
			Breaks:  "Ctrl-Z leaves the line of a wait on the screen of the shell.",
			Old:     "l.clear()\n\t\tl.screen.Stop(signals)",
			New:     "l.screen.Stop(signals)",
			FoundBy: []Finder{{"cmd/holdfast/internal/waitline", "TestLine"}, {command, "TestWaitingLineAndSignals/suspend"}},
		},
		{
			Name: "run-ends-with-its-reader", Invariant: "", File: runner + "interrupt.go",
			Breaks:  "A reader of the messages that goes away ends the run, and the command with it.",
			Old:     "signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)",
			New:     "signal.Reset(syscall.SIGPIPE)",
			FoundBy: []Finder{{command, "TestReaderOfMessagesGoesAway"}},
		},
	}
}
