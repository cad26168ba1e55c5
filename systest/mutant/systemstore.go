package mutant

// systemStoreMutants are faults of the store that all users of a host share, and of
// how people come to have a store at all.
func systemStoreMutants() []Mutant {
	return []Mutant{
		{
			Name: "sqlite-mistyped-path-makes-directories", Invariant: "I1", File: "sqlitelock/files.go",
			Breaks:  "A mistyped path makes its directories, and a store of its own in which every lock is free.",
			Old:     "dir, err := filepath.EvalSymlinks(filepath.Dir(path))",
			New:     "_ = os.MkdirAll(filepath.Dir(path), 0o700)\n\tdir, err := filepath.EvalSymlinks(filepath.Dir(path))",
			FoundBy: []Finder{{"sqlitelock", "TestMistypedPathMakesNothing"}},
		},
	}
}
