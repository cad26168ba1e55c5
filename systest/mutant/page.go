package mutant

// pageMutants are faults in the scripts of the dashboard, which node runs.
func pageMutants() []Mutant {
	return []Mutant{
		{
			Name: "page-shows-old-lock", File: "dashboard/web/rows.js",
			Breaks:  "The table shows a lock as it was, although it has changed.",
			Old:     "lock === row.lock ? row : new LockRow(lock)",
			New:     "row",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-forgets-lock", File: "dashboard/web/rows.js",
			Breaks:  "A lock that was given back and is taken again does not come back to the table.",
			Old:     "      else this.#known.delete(row.name);\n",
			New:     "",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-mixes-holders", File: "dashboard/web/rows.js",
			Breaks:  "The filter finds a lock by the name of one of its holders and the reason of another.",
			Old:     "this.words.some(([a, b]) => a.includes(whose) && b.includes(why))",
			New:     "this.words.some(([a]) => a.includes(whose)) && this.words.some(([, b]) => b.includes(why))",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-believes-late-event", File: "dashboard/web/model.js",
			Breaks:  "An event that is older than the last look at a lock changes its queue once more.",
			Old:     "  if (e.at < lock.seen) return false;\n",
			New:     "",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
	}
}
