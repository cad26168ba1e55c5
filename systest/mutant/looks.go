package mutant

// lookMutants are faults of what a server tells of many locks, and of its store.
func lookMutants() []Mutant {
	const inside = "httplock/server/internal/"
	in := func(dir string, tests ...string) (all []Finder) {
		for _, test := range tests {
			all = append(all, Finder{inside + dir, test})
		}
		return all
	}
	return []Mutant{
		{
			Name: "look-needs-one-right", Invariant: "I4", File: inside + "leasedoor/look.go",
			Breaks:  "Of several names it is enough to have a right to the first.",
			Old:     "if err := r.Need(caller.Read, name); err != nil {",
			New:     "if err := r.Need(caller.Read, want.Names[0]); err != nil {",
			FoundBy: in("leasedoor", "TestLookRefused"),
		},
		{
			Name: "look-body-is-short", Invariant: "", File: inside + "leasedoor/look.go",
			Breaks:  "A page of names that are long, or have quotation marks, is refused.",
			Old:     "r.ReadUpTo(&want, lookBody)",
			New:     "r.Read(&want)",
			FoundBy: in("leasedoor", "TestLookAtLongNames"),
		},
		{
			Name: "look-waits-for-each", Invariant: "I9", File: inside + "leasedoor/look.go",
			Breaks:  "A store that hangs is waited for by one name after the other.",
			Old:     "away.Store(&look.err)",
			New:     "away.Store(nil)",
			FoundBy: in("leasedoor", "TestLookAtHungStore"),
		},
		{
			Name: "look-hangs-with-a-part", Invariant: "I9", File: inside + "leasedoor/look.go",
			Breaks:  "While one part of a cluster hangs, a page sees nothing of the others.",
			Old:     "routes := door.Routes(d.house.Features.Router, names, func(name string) string { return name })",
			New:     "routes := []uint32(nil)",
			FoundBy: in("leasedoor", "TestLookWhereSomeFail"),
		},
		{
			Name: "look-fails-with-one", Invariant: "", File: inside + "leasedoor/look.go",
			Breaks:  "One key of another program keeps a page from all locks.",
			Old:     "if len(v.Locks) == 0 && !answered {",
			New:     "if len(v.Failed) > 0 {",
			FoundBy: in("leasedoor", "TestLookWhereSomeFail"),
		},
		{
			Name: "look-asks-twice", Invariant: "", File: "wire/view/lock.go",
			Breaks:  "A look at a lock asks for the lock again, to know whether do-once work is in progress.",
			Old:     "c.OnceEntryOf(ctx, lock)",
			New:     "c.OnceEntry(ctx, lock.Name)",
			FoundBy: in("leasedoor", "TestLookIsCheap"),
		},
		{
			Name: "look-one-by-one", Invariant: "", File: inside + "leasedoor/look.go",
			Breaks:  "128 names are 128 round trips after each other.",
			Old:     "looksAtOnce = 32",
			New:     "looksAtOnce = 1",
			FoundBy: in("leasedoor", "TestLookIsCheap"),
		},
		{
			Name: "stats-by-arrival", Invariant: "", File: inside + "eventdoor/stats.go",
			Breaks:  "What is heard of late counts as if it had happened then.",
			Old:     "s.numberLocked(now.Add(-e.Ago), now)",
			New:     "s.numberLocked(now, now)",
			FoundBy: in("eventdoor", "TestStatsAreBounded"),
		},
		{
			Name: "stats-count-twice", Invariant: "", File: inside + "eventdoor/eventdoor.go",
			Breaks:  "An event of which the engine tells twice counts twice.",
			Old:     "if events.add(e) {",
			New:     "if events.add(e) || true {",
			FoundBy: in("eventdoor", "TestStatsAreBounded"),
		},
		{
			Name: "stats-show-no-gap", Invariant: "", File: inside + "eventdoor/stats.go",
			Breaks:  "While the server heard nothing, the charts show that nothing happened.",
			Old:     "from = max(s.deaf, s.newest-kept+1)",
			New:     "from = n",
			FoundBy: in("eventdoor", "TestStatsShowGaps"),
		},
		{
			Name: "stats-keep-what-was", Invariant: "", File: inside + "eventdoor/stats.go",
			Breaks:  "What happened a quarter of an hour ago counts again and again.",
			Old:     "s.ring[s.newest%kept] = bucket{}",
			New:     "_ = bucket{}",
			FoundBy: in("eventdoor", "TestStats"),
		},
		{
			Name: "stats-grow", Invariant: "I11", File: inside + "eventdoor/stats.go",
			Breaks:  "A server remembers each lease that was ever lost.",
			Old:     "if len(s.losses) == keptLosses {",
			New:     "if len(s.losses) == keptLosses*keptLosses {",
			FoundBy: in("eventdoor", "TestStatsAreBounded"),
		},
		{
			Name: "stats-for-everybody", Invariant: "I4", File: inside + "eventdoor/stats.go",
			Breaks:  "Whoever may see some names is told how much happens to all.",
			Old:     "if err := r.Need(caller.Read, \"\"); err != nil {",
			New:     "if err := r.Need(caller.Read, \"\"); err != nil && false {",
			FoundBy: in("eventdoor", "TestStatsRefused"),
		},
		{
			Name: "diagnoses-are-events", Invariant: "", File: inside + "eventdoor/eventdoor.go",
			Breaks:  "While somebody looks on, the locks that a diagnosis tries turn up every minute.",
			Old:     "!hidden(e.Name) && ",
			New:     "",
			FoundBy: in("eventdoor", "TestStatsOfLosses"),
		},
		{
			Name: "store-for-everybody", Invariant: "I4", File: inside + "storedoor/storedoor.go",
			Breaks:  "Whoever may see some names is told of the servers of the store, and has them diagnosed.",
			Old:     "if err := r.Need(caller.Read, \"\"); err != nil {",
			New:     "if err := r.Need(caller.Read, \"\"); err != nil && false {",
			FoundBy: in("storedoor", "TestRefused"),
		},
		{
			Name: "store-with-its-password", Invariant: "", File: "cmd/holdfast/internal/cli/serve_demo.go",
			Breaks:  "Whoever may look at locks, and whoever reads the log, sees the password of the store.",
			Old:     "return engine, choice.Public(), err",
			New:     "return engine, choice.URL, err",
			FoundBy: []Finder{{"cmd/holdfast", "TestServeShowsNoSecret"}},
		},
		{
			Name: "each-page-asks-the-store", Invariant: "", File: inside + "storedoor/shared.go",
			Breaks:  "Each page that is open has the store diagnosed.",
			Old:     "time.Since(s.asked) >= s.every",
			New:     "time.Since(s.asked) >= 0",
			FoundBy: in("storedoor", "TestManyAsk"),
		},
		{
			Name: "store-that-hangs-is-well", Invariant: "", File: inside + "storedoor/shared.go",
			Breaks:  "Of a store that hangs, the page shows the round trip of before.",
			Old:     "last.err, last.known = nil, false // what",
			New:     "last.err = nil // what",
			FoundBy: in("storedoor", "TestAway"),
		},
		{
			Name: "fault-of-a-diagnosis-ends-all", Invariant: "", File: inside + "storedoor/storedoor.go",
			Breaks:  "A panic of the engine while it is asked for a page ends the server.",
			Old:     "_ = d.house.Guard(d.life, what, func() { f(d.life) }) // f tells those who wait",
			New:     "f(d.life)",
			FoundBy: in("storedoor", "TestAway"),
			Crash:   "marker-of-a-secret",
		},
		{
			Name: "diagnosis-outlives-the-server", Invariant: "", File: inside + "storedoor/storedoor.go",
			Breaks:  "After Close a diagnosis goes on with an engine that is about to be closed.",
			Old:     "\td.end()\n",
			New:     "",
			FoundBy: in("storedoor", "TestDrainAndClose"),
		},
		{
			Name: "outage-counts-as-refusal", Invariant: "", File: inside + "leasedoor/onetime_counts.go",
			Breaks:  "While the store is away it looks as if somebody were guessing one-time tokens.",
			Old:     "\t\tc.all.Failed++",
			New:     "\t\tc.all.Refused++",
			FoundBy: in("leasedoor", "TestTokenCounts"),
		},
	}
}
