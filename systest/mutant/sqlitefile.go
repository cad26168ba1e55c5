package mutant

// sqliteFileMutants are faults of what makes one file one lock.
func sqliteFileMutants() []Mutant {
	return []Mutant{
		{
			Name: "sqlite-hard-link-opened", Invariant: "I1", File: "sqlitelock/files.go",
			Breaks:  "A database that has two names is opened, so that each name has its own locks.",
			Old:     "if n := links(info); n > 1 {",
			New:     "if n := links(info); n > 1<<40 {",
			FoundBy: []Finder{{"sqlitelock", "TestTraps"}},
		},
		{
			Name: "sqlite-newer-schema-opened", Invariant: "I10", File: "sqlitelock/schema.go",
			Breaks:  "A database of a newer version of holdfast is opened, and fails later, at the first thing that is different.",
			Old:     "case number != schemaNumber:",
			New:     "case number < schemaNumber:",
			FoundBy: []Finder{{"sqlitelock", "TestUnknownSchema"}},
		},
		{
			Name: "sqlite-mount-point-opened", Invariant: "I1", File: "sqlitelock/files.go",
			Breaks:  "A database that is mounted without its directory is opened, and has its own log there.",
			Old:     "\tcase mounted:\n",
			New:     "\tcase mounted && path == \"\":\n",
			FoundBy: []Finder{{"sqlitelock", "TestBindMountOfTheFile"}},
		},
		{
			Name: "sqlite-memory-not-compared", Invariant: "I1", File: "sqlitelock/files.go",
			Breaks:  "A holder whose -shm or -wal was deleted goes on renewing where nobody sees it.",
			Old:     "[3]string{\"\", logSuffix, memorySuffix} {\n\t\tinfo, err",
			New:     "[1]string{\"\"} {\n\t\tinfo, err",
			FoundBy: []Finder{{"sqlitelock", "TestOneFileOneLock"}},
		},
		{
			Name: "sqlite-loss-is-unavailable", Invariant: "I10", File: "sqlitelock/release.go",
			Breaks:  "A holder whose database was deleted is told that the store is unavailable, and trusts its lease until the deadline.",
			Old:     "errs[i] = lost(err)",
			New:     "errs[i] = err",
			FoundBy: []Finder{{"sqlitelock", "TestOneFileOneLock"}},
		},
		{
			Name: "sqlite-commit-not-checked", Invariant: "I1", File: "sqlitelock/group.go",
			Breaks:  "A lease is granted that was recorded in a file which was replaced meanwhile.",
			Old:     "if err := e.files.same(e.path); err != nil {\n\t\treturn fmt",
			New:     "if err := error(nil); err != nil {\n\t\treturn fmt",
			FoundBy: []Finder{{"sqlitelock", "TestReplacedBeforeTheCommit"}},
		},
		{
			Name: "sqlite-no-witness", Invariant: "I1", File: "sqlitelock/open.go",
			Breaks:  "Whoever opens a new database where one was deleted that is in use does not notice.",
			Old:     "e.witness = testify(e.path, inodeOf(e.files[0]), e.system)",
			New:     "_ = testify",
			FoundBy: []Finder{{"sqlitelock", "TestOneFileOneLock"}},
		},
		{
			Name: "sqlite-reader-of-other-files", Invariant: "I1", File: "sqlitelock/open.go",
			Breaks:  "A connection that reads is opened to the file that has taken the place of the engine's.",
			Old:     "err = e.files.same(e.path) // INVARIANT I1: they may be others since Open",
			New:     "err = nil",
			FoundBy: []Finder{{"sqlitelock", "TestReaderOfOtherFiles"}},
		},
		{
			Name: "sqlite-bell-follows-links", Invariant: "", File: "sqlitelock/identity_unix.go",
			Breaks:  "Ringing the bell writes into the file that a symbolic link in its place leads to.",
			Old:     "const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK",
			New:     "const noFollow = syscall.O_NONBLOCK",
			FoundBy: []Finder{{"sqlitelock", "TestTrapIsSetLater"}},
		},
		{
			Name: "sqlite-network-opened", Invariant: "I1", File: "sqlitelock/open.go",
			Breaks:  "A database on a network file system is opened, where other hosts do not see its locks.",
			Old:     "!s.AllowNetwork && slices.Contains(remote, kind) {",
			New:     "!s.AllowNetwork && slices.Contains(remote, kind) && kind == \"\" {",
			FoundBy: []Finder{{"sqlitelock", "TestNetworkFileSystems"}},
		},
		{
			Name: "sqlite-open-directory", Invariant: "", File: "sqlitelock/files.go",
			Breaks:  "A database is kept where every user may replace it.",
			Old:     "if d.open && info.Mode()&fs.ModeSticky == 0 {",
			New:     "if d.open && info.Mode()&fs.ModeSticky == 0 && path == \"\" {",
			FoundBy: []Finder{{"sqlitelock", "TestOpenDirectories"}},
		},
		{
			Name: "sqlite-log-of-another-user", Invariant: "I10", File: "sqlitelock/files.go",
			Breaks:  "A -wal or -shm of another user is \"unable to open database file\".",
			Old:     "if err := mayUse(path); !errors.Is(err, fs.ErrNotExist) {",
			New:     "if err := mayUse(path); err == nil {",
			FoundBy: []Finder{{"sqlitelock", "TestFilesOfAnotherUser"}},
		},
	}
}
