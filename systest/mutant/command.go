package mutant

// command is the directory of the command's own tests, which build it.
const command = "cmd/holdfast"

// commandMutants are faults of holdfast run.
func commandMutants() []Mutant {
	return []Mutant{
		{
			Name: "run-tells-the-group-only", Invariant: "", File: "cmd/holdfast/internal/supervise/job_linux.go",
			Breaks:  "What has left the command's process group, of its job, is not told that it is to end.",
			Old:     "case (sig == unix.SIGUSR1 || sig == unix.SIGUSR2) && p.group != j.pgid:",
			New:     "case p.group != j.pgid:",
			FoundBy: []Finder{{command, "TestSignalReachesEachOnce"}},
		},
		{
			Name: "run-kills-the-group-only", Invariant: "I3", File: "cmd/holdfast/internal/supervise/job_linux.go",
			Breaks:  "What has left the command's process group, of its job, is not killed.",
			Old:     "if err := p.send(unix.SIGKILL); err != nil {",
			New:     "if p.group != j.pgid {\n\t\t\treturn\n\t\t}\n\t\tif err := p.send(unix.SIGKILL); err != nil {",
			FoundBy: []Finder{{command, "TestKilledCommandLeavesNothing"}},
		},
		{
			Name: "run-gives-back-beside-a-descendant", Invariant: "I3", File: "cmd/holdfast/internal/runner/watch.go",
			Breaks:  "A lock is given back when the command has ended, although others of its job are still at work.",
			Old:     "case isLost || w.ending: //",
			New:     "case isLost || w.ending:\n\t\treturn true //",
			FoundBy: []Finder{{command, "TestSignalReachesTheGroup"}},
		},
		{
			Name: "run-ends-its-own-children", Invariant: "", File: "cmd/holdfast/internal/supervise/tree.go",
			Breaks:  "The job is what descends from holdfast, and so are children that it had before.",
			Old:     "t.job = newJob(t.warden.pid, t.pgid, earlier, c.Mark)",
			New:     "t.job = newJob(os.Getpid(), t.pgid, earlier, c.Mark)",
			FoundBy: []Finder{{command, "TestEarlierChildrenLiveOn"}},
		},
		{
			Name: "run-forgets-its-own-children", Invariant: "", File: "cmd/holdfast/internal/supervise/job_linux.go",
			Breaks:  "When the warden is killed, children that holdfast had before are taken for its orphans.",
			Old:     "if j.earlier[child.identity()] || child.PID == j.warden.PID || len(j.earlier) > 0 && !child.isMarked(j.mark) {",
			New:     "if child.PID == j.warden.PID {",
			FoundBy: []Finder{{command, "TestEarlierChildrenLiveOn"}},
		},
		{
			Name: "run-believes-in-a-dying-warden", Invariant: "I3", File: "cmd/holdfast/internal/supervise/job_linux.go",
			Breaks:  "When the warden is killed, a job that was not yet given to holdfast is taken for gone.",
			Old:     "<-r.wardenDead // until then it may have children, although its files are closed\n\tj.fallen.Store(true)\n\tfor quiet := 0; quiet < 2; {",
			New:     "j.fallen.Store(true)\n\tfor quiet := 2; quiet < 2; {",
			FoundBy: []Finder{{command, "TestEarlierChildrenLiveOn"}},
		},
		{
			Name: "warden-wastes-the-margin", Invariant: "I3", File: "cmd/holdfast/internal/runner/watch.go",
			Breaks:  "A warden whose holdfast is stopped uses half of the time that there is to kill the job.",
			Old:     "held.Deadline().Add(-Margin(j.Opts))",
			New:     "held.Deadline().Add(-Margin(j.Opts) / 2)",
			FoundBy: []Finder{{"cmd/holdfast/internal/runner", "TestWardenHasTheWholeMargin"}},
		},
		{
			Name: "warden-learns-late-when-to-kill", Invariant: "I3", File: "cmd/holdfast/internal/supervise/warden.go",
			Breaks:  "If holdfast is stopped in the instant in which its command starts, nobody ends the job.",
			Old:     "if !c.KillAt.IsZero() {",
			New:     "if false {",
			FoundBy: []Finder{{"cmd/holdfast/internal/supervise", "TestKillAtNeedsNoMoreOrders"}},
		},
		{
			Name: "warden-keeps-the-terminal-back", Invariant: "", File: "cmd/holdfast/internal/supervise/guard.go",
			Breaks:  "The command is not in the foreground of its terminal.",
			Old:     "sys.Foreground, sys.Ctty = foreground, unix.Stdin",
			New:     "sys.Foreground, sys.Ctty = foreground && false, unix.Stdin",
			FoundBy: []Finder{{command, "TestTerminal"}},
		},
		{
			Name: "run-loses-the-terminal-to-nobody", Invariant: "", File: "cmd/holdfast/internal/supervise/tree.go",
			Breaks:  "A command that cannot be started takes the terminal away from the shell.",
			Old:     "if foreground { // the group",
			New:     "if false && foreground { // the group",
			FoundBy: []Finder{{command, "TestTerminal"}},
		},
		{
			Name: "run-needs-its-first-warden", Invariant: "", File: "cmd/holdfast/internal/supervise/tree.go",
			Breaks:  "A run whose warden was killed while it waited for the lock does not run its command.",
			Old:     "if s.warden.hasEnded() {",
			New:     "if s.warden.hasEnded() && s.err != nil {",
			FoundBy: []Finder{{command, "TestWaitingWardenIsReplaced"}},
		},
		{
			Name: "warden-sleeps-with-the-machine", Invariant: "I8", File: "cmd/holdfast/internal/supervise/guard.go",
			Breaks:  "After a suspend the warden kills as late as the machine slept.",
			Old:     "return min(left, lookEvery)",
			New:     "return left",
			FoundBy: []Finder{{"cmd/holdfast/internal/supervise", "TestGuardAfterSuspension"}},
		},
	}
}
