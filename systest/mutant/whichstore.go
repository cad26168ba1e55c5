package mutant

// whichStoreMutants are faults in how a command finds its store, in what it says of
// it, and in what a command within a run knows of the locks around it.
func whichStoreMutants() []Mutant {
	const store, held = "cmd/holdfast/internal/store", "cmd/holdfast/internal/held"
	return []Mutant{
		{
			Name: "store-goes-on-to-the-next", Invariant: "I1", File: store + "/resolve.go",
			Breaks:  "A store that is named and cannot be used has the next one used, where the same lock is free.",
			Old:     "if err != nil || c.URL != \"\" {",
			New:     "if err == nil && c.URL != \"\" {",
			FoundBy: []Finder{{store, "TestNeverTheNext"}},
		},
		{
			Name: "store-unknown-is-absent", Invariant: "I1", File: store + "/resolve.go",
			Breaks:  "A configuration or a system's store that this user may not see counts as not there, and another store is used.",
			Old:     "return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)",
			New:     "return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission)",
			FoundBy: []Finder{{store, "TestUnknownIsNotAbsent"}},
		},
		{
			Name: "store-link-to-nothing-is-absent", Invariant: "I1", File: store + "/file.go",
			Breaks:  "A configuration behind a link that leads nowhere for now counts as not there, and another store is used.",
			Old:     "%s is a link to nothing\", driver.ErrInvalid, path)",
			New:     "%s is a link to nothing: %w\", driver.ErrInvalid, path, err)",
			FoundBy: []Finder{{store, "TestNeverTheNext"}},
		},
		{
			Name: "store-of-the-house-before-the-users", Invariant: "I1", File: store + "/resolve.go",
			Breaks:  "The configuration of the house counts before the user's: not the one order that all versions have.",
			Old:     "return fromConfig(a.userConfig()) },\n\t\tfunc() (Choice, error) { return fromConfig(a.Root + systemConfig) },",
			New:     "return fromConfig(a.Root + systemConfig) },\n\t\tfunc() (Choice, error) { return fromConfig(a.userConfig()) },",
			FoundBy: []Finder{{store, "TestOrder"}},
		},
		{
			Name: "config-that-others-write", Invariant: "I1", File: store + "/file_unix.go",
			Breaks:  "A configuration that others may write is believed: they choose the store of whoever reads it.",
			Old:     "if info.Mode().Perm()&0o022 == 0 {",
			New:     "if info.Mode().Perm()&0o022 <= 0o777 {",
			FoundBy: []Finder{{store, "TestModes"}},
		},
		{
			Name: "config-of-a-stranger", Invariant: "I1", File: store + "/file_unix.go",
			Breaks:  "A configuration of another user is believed, as with sudo -E: that user chooses root's store.",
			Old:     "if owner == 0 || owner == me {",
			New:     "if owner >= 0 || owner == me {",
			FoundBy: []Finder{{store, "TestOwners"}, {command, "TestSudoTakesNoStrangersFile"}},
		},
		{
			Name: "config-password-that-others-read", Invariant: "", File: store + "/file_unix.go",
			Breaks:  "A password in a file that others may read is used without a word.",
			Old:     "if info.Mode().Perm()&refused == 0 {",
			New:     "if info.Mode().Perm()&refused <= 0o777 {",
			FoundBy: []Finder{{store, "TestModes"}},
		},
		{
			Name: "run-hands-the-password-on", Invariant: "", File: store + "/resolve.go",
			Breaks:  "The URL of --store is in the environment of the command with its password.",
			Old:     "case a.Store != \"\" && !stores.HasCredentials(a.Store):",
			New:     "case a.Store != \"\":",
			FoundBy: []Finder{{store, "TestEnvOfCommands"}},
		},
		{
			Name: "run-password-in-the-environment", Invariant: "", File: "cmd/holdfast/internal/cli/job.go",
			Breaks:  "The URL of the lock's store is in the environment of the command with its password.",
			Old:     "= c, choice.Public(), choice.Env",
			New:     "= c, choice.URL, choice.Env",
			FoundBy: []Finder{{command, "TestThreeLevels"}},
		},
		{
			Name: "run-replaces-the-users-store", Invariant: "", File: "cmd/holdfast/internal/runner/env.go",
			Breaks:  "The user's HOLDFAST_STORE is replaced by a URL without its password: a run within a run is another user of the store.",
			Old:     "\"HOLDFAST_LOCK_STORE=\" + j.Store,",
			New:     "\"HOLDFAST_LOCK_STORE=\" + j.Store,\n\t\t\"HOLDFAST_STORE=\" + j.Store,",
			FoundBy: []Finder{{command, "TestThreeLevels"}},
		},
		{
			Name: "nested-command-asks-another-store", Invariant: "I1", File: "cmd/holdfast/internal/cli/nested.go",
			Breaks:  "A command within a run uses another store than the run without a word, and finds every lock free.",
			Old:     "if choice.ByFlag || outer",
			New:     "if true || choice.ByFlag || outer",
			FoundBy: []Finder{{command, "TestScripts/environment"}},
		},
		{
			Name: "nested-run-compares-names", Invariant: "", File: held + "/wait.go",
			Breaks:  "A process that has outlived its run is refused the lock of that name for ever, whoever has it.",
			Old:     "if l.has(h.Token) {",
			New:     "if len(l) > 0 {",
			FoundBy: []Finder{{held, "TestTakeWaitsForOthers"}, {held, "TestBlock"}},
		},
		{
			Name: "nested-run-waits-behind-a-waiter", Invariant: "", File: held + "/wait.go",
			Breaks:  "A run waits for ever behind one in the queue who waits for the run around it.",
			Old:     "if w.Try {",
			New:     "if true {",
			FoundBy: []Finder{{held, "TestTakeSeesWhoCameBefore"}, {held, "TestBlock"}},
		},
		{
			Name: "nested-run-counts-those-behind", Invariant: "", File: held + "/wait.go",
			Breaks:  "A run is refused because of somebody behind it in the queue, who is not in its way.",
			Old:     "return queue[:i]",
			New:     "return queue[:i+len(queue)-i]",
			FoundBy: []Finder{{held, "TestBlock"}},
		},
		{
			Name: "nested-run-waits-for-itself", Invariant: "", File: held + "/wait.go",
			Breaks:  "A run within a run of the same name waits for itself for ever.",
			Old:     "if !view.Fits(w.Need) {",
			New:     "if false {",
			FoundBy: []Finder{{held, "TestTakeRefusesItself"}, {held, "TestBlock"}},
		},
	}
}
