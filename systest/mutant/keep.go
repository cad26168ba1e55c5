package mutant

// keepMutants are faults of leases that a script keeps, and of what a command says
// to the holdfast that runs it.
func keepMutants() []Mutant {
	const control, runner, keep = "cmd/holdfast/internal/control", "cmd/holdfast/internal/runner", "cmd/holdfast/internal/keep"
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
		{
			Name: "keeper-looks-once-a-second", Invariant: "", File: keep + "/keeper.go",
			Breaks:  "The lock of a script that was killed is free a second later.",
			Old:     "case <-k.script.Gone():\n\t\t\treturn",
			New:     "case <-k.script.Gone():\n\t\t\ttime.Sleep(lookEvery)\n\t\t\treturn",
			FoundBy: []Finder{{command, "TestKeeperFreesTheLock"}},
		},
		{
			Name: "keeper-needs-no-commit", Invariant: "I5", File: keep + "/keeper.go",
			Breaks:  "A lock that no script was told of is kept: acquire was killed.",
			Old:     "if line != commit {",
			New:     "if false && line != commit {",
			FoundBy: []Finder{{command, "TestUncommittedKeeper"}},
		},
		{
			Name: "keeper-tells-too-late", Invariant: "I3", File: keep + "/keeper.go",
			Breaks:  "A script whose store is cut off is told when its lease is over.",
			Old:     "next := k.lease.Remaining() - k.lead()",
			New:     "next := k.lease.Remaining()",
			FoundBy: []Finder{{command, "TestScriptHearsOfTheLossInTime"}},
		},
		{
			Name: "keeper-tells-nobody-of-a-loss", Invariant: "I3", File: keep + "/keeper.go",
			Breaks:  "A script whose lock was broken works on.",
			Old:     "if cause := context.Cause(k.lease.Context()); cause == nil ||",
			New:     "if cause := context.Cause(k.lease.Context()); cause == nil &&",
			FoundBy: []Finder{{command, "TestScriptHearsOfABreak"}},
		},
		{
			Name: "keeper-dies-with-the-group", Invariant: "I1", File: keep + "/keeper.go",
			Breaks:  "A lock is not renewed any more while its script cleans up after TERM.",
			Old:     "signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,",
			New:     "signal.Ignore(syscall.SIGHUP,",
			FoundBy: []Finder{{command, "TestKeeperOutlivesSignals"}},
		},
		{
			Name: "keeper-holds-files-open", Invariant: "", File: keep + "/keeper.go",
			Breaks:  "Whoever reads what a script writes waits for its keeper.",
			Old:     "err == nil && flags&unix.FD_CLOEXEC == 0 {",
			New:     "err == nil && flags&unix.FD_CLOEXEC == 0 && false {",
			FoundBy: []Finder{{command, "TestScripts/acquire"}},
		},
		{
			Name: "refused-acquire-prints-no-exit", Invariant: "I1", File: "cmd/holdfast/internal/cli/acquire.go",
			Breaks:  "A script without the two bars works on while somebody else has the lock.",
			Old:     "if errors.As(err, &e) && !a.asksForJSON() {",
			New:     "if errors.As(err, &e) && a.json {",
			FoundBy: []Finder{{command, "TestScripts/acquire"}},
		},
		{
			Name: "names-are-not-quoted", Invariant: "", File: "cmd/holdfast/internal/cli/acquire.go",
			Breaks:  "What stands in the name of a lock is carried out by the shell.",
			Old:     "return \"'\" + strings.ReplaceAll(s, \"'\", `'\\''`) + \"'\"",
			New:     "return \"'\" + s + \"'\"",
			FoundBy: []Finder{{command, "TestScripts/acquire"}},
		},
		{
			Name: "acquire-for-a-script-that-has-ended", Invariant: "I5", File: "cmd/holdfast/internal/cli/acquire.go",
			Breaks:  "A lock is waited for, and taken, for a script that was killed meanwhile.",
			Old:     "case <-script.Gone():\n\t\t\t\tcancel()",
			New:     "case <-script.Gone():",
			FoundBy: []Finder{{command, "TestScriptEndsWhileItWaits"}},
		},
		{
			Name: "hold-is-noted-after-the-answer", Invariant: "I5", File: "cmd/holdfast/internal/cli/ticket.go",
			Breaks:  "Nobody knows the lease ID of a hold whose answer was lost.",
			Old:     "if n.ticket.LeaseID != req.LeaseID {",
			New:     "if n.ticket.LeaseID == req.LeaseID {",
			FoundBy: []Finder{{command, "TestHoldIsKnownBeforeItIsAskedFor"}},
		},
		{
			Name: "person-holds-twice", Invariant: "", File: "cmd/holdfast/internal/cli/hold.go",
			Breaks:  "A second hold of the same name waits for the first one of the same person.",
			Old:     "for _, t := range found {\n\t\tif err := a.dropDead(",
			New:     "for _, t := range found[:0] {\n\t\tif err := a.dropDead(",
			FoundBy: []Finder{{command, "TestScripts/hold"}},
		},
		{
			Name: "release-cancels-who-still-waits", Invariant: "", File: "cmd/holdfast/internal/cli/ticket.go",
			Breaks:  "A person who gives back a hold loses the place of another that still waits.",
			Old:     "return t.Token == 0 && lives(t.PID)",
			New:     "return t.Token == 0 && lives(t.PID) && false",
			FoundBy: []Finder{{command, "TestTwoHoldsAtATime"}},
		},
		{
			Name: "keeper-ends-a-script-that-is-done", Invariant: "", File: keep + "/keeper.go",
			Breaks:  "A script that completes its work, or gives back its lock, is told that it has lost the lock.",
			Old:     "cause == nil || errors.Is(cause, holdfast.ErrLost) {",
			New:     "cause == nil || errors.Is(cause, holdfast.ErrLost) || errors.Is(cause, context.Canceled) {",
			FoundBy: []Finder{{command, "TestScripts/once_begin"}},
		},
	}
}
