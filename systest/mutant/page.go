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
		{
			Name: "page-shows-ended-lease", File: "dashboard/web/model.js",
			Breaks:  "An answer that was overtaken by the end of a lease brings the lease back.",
			Old:     "(h) => h.released || !over(h)",
			New:     "() => true",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-forgets-grant", File: "dashboard/web/model.js",
			Breaks:  "An answer that was overtaken by a grant takes the holder away.",
			Old:     "if (h.told >= sent && ",
			New:     "if (false && ",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-ignores-gap", File: "dashboard/web/fleet.js",
			Breaks:  "After events were missed the page does not list the locks again.",
			Old:     `if (e.event === "gap") nextList.ring(0);`,
			New:     `if (e.event === "gap") nextList.ring(60_000);`,
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-keeps-what-others-saw", File: "dashboard/web/fleet.js",
			Breaks:  "Whoever signs in next sees the locks and events that the one before could see.",
			Old:     "  model.clear();\n",
			New:     "",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-hides-silence", File: "dashboard/web/fleet.js",
			Breaks:  "A store that does not answer is shown as it was, and not as stale, while the stream of events is open.",
			Old:     "      if (!signal.aborted) cut.abort(problem);\n",
			New:     "      answered = performance.now();\n",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-asks-for-all-names", File: "dashboard/web/fleet.js",
			Breaks:  "A caller who may see some names only is refused the list.",
			Old:     `session.value.prefixes ?? [""]`,
			New:     `[""]`,
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-misses-circle", File: "dashboard/web/waits.js",
			Breaks:  "Those who wait for each other are not shown as a circle.",
			Old:     "const circle = ring.length > 1;",
			New:     "const circle = false;",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-puts-circle-last", File: "dashboard/web/waits.js",
			Breaks:  "A circle, which nobody but a person ends, comes behind others for whom as many wait.",
			Old:     "b.circle - a.circle || ",
			New:     "",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
	}
}
