package mutant

// pulseMutants are faults in what the dashboard counts and draws, which node runs.
func pulseMutants() []Mutant {
	return []Mutant{
		{
			Name: "page-counts-events-twice", File: "dashboard/web/series.js",
			Breaks:  "What the server has counted is counted again when the page hears of it.",
			Old:     "events.slice(events.findLastIndex((e) => id && e.id === id) + 1)",
			New:     "events.slice()",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-counts-back-over-gap", File: "dashboard/web/series.js",
			Breaks:  "What was held is counted back over events that may have been missed.",
			Old:     "    at = at && !b.gap ? {\n",
			New:     "    at = at ? {\n",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-keeps-what-is-counted-twice", File: "dashboard/web/series.js",
			Breaks:  "After a restart of the server, the page adds its own counts to those of the same time.",
			Old:     "old.buckets.filter((b) => b.start + every <= buckets[0].start)",
			New:     "old.buckets.filter((b) => b.start <= buckets[0].start)",
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
		{
			Name: "page-draws-over-gap", File: "dashboard/web/charts.js",
			Breaks:  "A chart draws a line over a time of which nothing is known.",
			Old:     `return open = false, "";`,
			New:     `return "";`,
			FoundBy: []Finder{{"dashboard", "TestJS"}},
		},
	}
}
