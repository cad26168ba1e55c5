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
			Old:     "time.Since(info.ModTime()) < old {",
			New:     "time.Since(info.ModTime()) < 0 {",
			FoundBy: []Finder{{control, "TestSweep"}},
		},
		{
			Name: "extension-is-not-told-to-the-warden", Invariant: "I3", File: runner + "/desk.go",
			Breaks:  "A command is killed at the end of the lease that it has extended.",
			Old:     "d.tell,",
			New:     "nil,",
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
			Name: "one-silent-peer-holds-up-all", Invariant: "", File: control + "/server.go",
			Breaks:  "A connection to the control socket that says nothing keeps everybody else from an answer.",
			Old:     "const (\n\t// conversations is how many requests are answered at a time. More have to wait.\n\tconversations = 16",
			New:     "const (\n\t// conversations is how many requests are answered at a time. More have to wait.\n\tconversations = 16 - 15",
			FoundBy: []Finder{{control, "TestSilentPeersHoldNobodyUp"}},
		},
	}
}
