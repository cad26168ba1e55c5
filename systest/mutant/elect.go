package mutant

// electMutants are faults of holdfast elect.
func electMutants() []Mutant {
	const command, runner = "cmd/holdfast", "cmd/holdfast/internal/runner"
	return []Mutant{
		{
			Name: "elect-hands-over-before-its-job-is-gone", Invariant: "I1", File: runner + "/elect.go",
			Breaks:  "The lead is given back while something of the command is left.",
			Old:     "j.verb, j.WaitChildren, j.Opts.WholeTTL = \"elect\", true, true",
			New:     "j.verb, j.WaitChildren, j.Opts.WholeTTL = \"elect\", false, true",
			FoundBy: []Finder{{command, "TestElectLeavesNothingBehind"}},
		},
		{
			Name: "elect-reports-progress-itself", Invariant: "", File: runner + "/office.go",
			Breaks:  "A command that says no more that it is alive is taken to be alive.",
			Old:     "w.desk.pulse.Beat()",
			New:     "w.desk.pulse.Grace(startTime)",
			FoundBy: []Finder{{command, "TestElectUnderAManager"}},
		},
		{
			Name: "elect-hides-that-it-waits", Invariant: "", File: runner + "/elect.go",
			Breaks:  "A unit that waits for the lead is not started.",
			Old:     "c.Manager.Tell(\"READY=1\", fmt.Sprintf(\"STATUS=waiting",
			New:     "c.Manager.Tell(fmt.Sprintf(\"STATUS=waiting",
			FoundBy: []Finder{{command, "TestElectUnderAManager"}},
		},
		{
			Name: "command-starts-after-the-signal", Invariant: "", File: runner + "/office.go",
			Breaks:  "A command is started although a signal has ended the election.",
			Old:     "if o.ended == nil {\n\t\to.signals",
			New:     "if o.ended == nil || o.signals == nil {\n\t\to.signals",
			FoundBy: []Finder{{runner, "TestOffice"}},
		},
		{
			Name: "manager-of-elect-is-the-commands", Invariant: "", File: "cmd/holdfast/internal/cli/elect.go",
			Breaks:  "The command is told to speak for elect's process, which the manager does not believe.",
			Old:     "\tnotify.Forget()\n",
			New:     "",
			FoundBy: []Finder{{command, "TestElectCommandHasItsOwnManager"}},
		},
	}
}
