package mutant

// storesMutants are faults in how a URL is opened and shown.
func storesMutants() []Mutant {
	return []Mutant{
		{
			Name: "valkey-url-shows-its-password", Invariant: "", File: "stores/url.go",
			Breaks:  "A URL that begins with valkey is shown with a password that has special characters.",
			Old:     "return strings.Contains(p.rest, \"@\")",
			New:     "return !strings.Contains(p.scheme, \"valkey\") && strings.Contains(p.rest, \"@\")",
			FoundBy: []Finder{{"stores", "TestPublic"}},
		},
		{
			Name: "url-shows-malformed-parameters", Invariant: "", File: "stores/url.go",
			Breaks:  "A password among parameters that are malformed is shown.",
			Old:     "q, err := url.ParseQuery(u.RawQuery)\n\tif err != nil {",
			New:     "q, err := url.ParseQuery(u.RawQuery)\n\tif err != nil && u.RawQuery == \"\" {",
			FoundBy: []Finder{{"stores", "TestPublic"}},
		},
		{
			Name: "url-error-quotes-what-is-not-a-scheme", Invariant: "", File: "stores/open.go",
			Breaks:  "A password that was taken for a URL is in the error.",
			Old:     "if !found || !isScheme(scheme) {",
			New:     "if !found {",
			FoundBy: []Finder{{"stores", "TestOpenRefuses"}},
		},
		{
			Name: "file-url-error-quotes-it", Invariant: "", File: "sqlitelock/open.go",
			Breaks:  "The error of a malformed URL of a file quotes it, with the password that somebody left in it.",
			Old:     "for example %% as %%25\", driver.ErrInvalid)",
			New:     "for example %% as %%25: %w\", driver.ErrInvalid, err)",
			FoundBy: []Finder{{"stores", "TestOpenRefuses"}},
		},
		{
			Name: "quorum-leaves-its-members-open", Invariant: "I11", File: "stores/quorum.go",
			Breaks:  "Whoever closes a quorum that was opened by its URL leaves the connections to its servers.",
			Old:     "opts.CloseMembers = true",
			New:     "opts.CloseMembers = false",
			FoundBy: []Finder{{"stores", "TestQuorumMembers"}},
		},
		{
			Name: "sqlite-journal-that-went-fails-the-open", Invariant: "I10", File: "sqlitelock/files.go",
			Breaks:  "Whoever opens a database in the moment in which another process creates it is told that its journal is not there.",
			Old:     "if err := mayUse(path); !errors.Is(err, fs.ErrNotExist) {",
			New:     "if err := mayUse(path); true {",
			FoundBy: []Finder{{"sqlitelock", "TestJournalThatGoes"}},
		},
	}
}
