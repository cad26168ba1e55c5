package mutant

// keepMutants are faults of leases that a script keeps, and of what a command says
// to the holdfast that runs it.
func keepMutants() []Mutant {
	const control, runner = "cmd/holdfast/internal/control", "cmd/holdfast/internal/runner"
	return []Mutant{
		{
			Name: "socket-in-a-directory-of-others", Invariant: "I4", File: control + "/dir.go",
			Breaks:  "The control socket is put into a directory that others can open.",
			Old:     "case info.Mode().Perm()&0o077 != 0:",
			New:     "case false:",
			FoundBy: []Finder{{control, "TestDirectoryIsPrivate"}},
		},
		{
			Name: "socket-behind-a-link", Invariant: "I4", File: control + "/dir.go",
			Breaks:  "A link leads the control socket to a directory of somebody else's choice.",
			Old:     "info, err := os.Lstat(dir)",
			New:     "info, err := os.Stat(dir)",
			FoundBy: []Finder{{control, "TestDirectoryIsPrivate"}},
		},
		{
			Name: "socket-of-the-living-is-swept", Invariant: "", File: control + "/dir.go",
			Breaks:  "Control sockets of processes that are starting are deleted.",
			Old:     "|| time.Since(info.ModTime()) < old {",
			New:     "{",
			FoundBy: []Finder{{control, "TestSweep"}},
		},
		{
			Name: "extension-is-not-told-to-the-warden", Invariant: "I3", File: runner + "/desk.go",
			Breaks:  "A command is killed at the end of the lease that it has extended.",
			Old:     "Extended: d.tell,",
			New:     "Extended: nil,",
			FoundBy: []Finder{{command, "TestExtensionReachesTheWarden"}},
		},
		{
			Name: "stuck-command-is-renewed", Invariant: "", File: runner + "/watch.go",
			Breaks:  "A command that makes no progress keeps its lock.",
			Old:     "if bounded && idle <= 0 {",
			New:     "if false {",
			FoundBy: []Finder{{command, "TestScripts/control"}},
		},
		{
			Name: "run-is-released-from-within", Invariant: "I1", File: runner + "/desk.go",
			Breaks:  "A command gives back the lock of the run that it works under.",
			Old:     "return control.Answer{Status: exit.Config, Error: fmt.Sprintf(",
			New:     "if _ = w.held.Release(context.Background()); true {\n\t\treturn control.Answer{}\n\t}\n\treturn control.Answer{Status: exit.Config, Error: fmt.Sprintf(",
			FoundBy: []Finder{{command, "TestScripts/control"}},
		},
		{
			Name: "requests-hold-up-the-watch", Invariant: "I3", File: runner + "/watch.go",
			Breaks:  "A request to a store that does not answer delays the end of a job that has lost its lock.",
			Old:     "case done := <-w.desk.extended:",
			New:     "case done := <-w.desk.extended:\n\t\t\t_ = w.held.Extend(context.Background(), w.Opts.TTL)",
			FoundBy: []Finder{{command, "TestRequestsHoldNothingUp"}},
		},
	}
}
