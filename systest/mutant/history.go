package mutant

// historyMutants are faults of what is written down of what happens, and told.
func historyMutants() []Mutant {
	memlock := func(requirement string) []Finder {
		return []Finder{{"memlock", "TestConformanceWithHistory/" + requirement}}
	}
	const sqlite = "sqlitelock/history.go"
	return []Mutant{
		{
			Name: "history-expiry-is-silent", Invariant: "I10", File: "memlock/lock.go",
			Breaks:  "A lease that runs out leaves nothing in the history, as if it were still held.",
			Old:     "if over && !h.released {",
			New:     "if over && h.released {",
			FoundBy: memlock("HistoryTellsOfExpiry"),
		},
		{
			Name: "history-loss-looks-released", Invariant: "I10", File: "memlock/lease.go",
			Breaks:  "A holder that lost its lease seems to have given it back in time.",
			Old:     "if req.Lost {",
			New:     "if req.Lost && req.Cancel {",
			FoundBy: memlock("HistoryTellsOfLoss"),
		},
		{
			Name: "history-unbounded", Invariant: "I11", File: "memlock/history.go",
			Breaks:  "A name that is used all day keeps every event of it.",
			Old:     "max(0, len(b.events)-driver.MaxHistory)",
			New:     "max(0, len(b.events)-100*driver.MaxHistory)",
			FoundBy: memlock("HistoryIsBounded"),
		},
		{
			Name: "feed-tells-before-the-gap", Invariant: "I10", File: "driver/feed.go",
			Breaks:  "Whoever listens to a feed from now on is told of what came before the gap.",
			Old:     "listens && d.number > since &&",
			New:     "listens && d.number > 0*since &&",
			FoundBy: []Finder{{"driver", "TestFeedBeginsWithGap"}},
		},
		{
			Name: "lost-lease-looks-released", Invariant: "I10", File: "lease_release.go",
			Breaks:  "A history does not tell a lease that its holder has lost from one that was given back in time.",
			Old:     "req.Lost = l.lostBefore() != nil",
			New:     "req.Lost = l == nil",
			FoundBy: []Finder{{".", "TestLostLeaseIsGivenBackAsLost"}},
		},
		{
			Name: "late-release-looks-lost", Invariant: "I10", File: "lease_release.go",
			Breaks:  "Whatever is given back seems to have been lost.",
			Old:     "req.Lost = l.lostBefore() != nil",
			New:     "req.Lost = l.lostError() != nil",
			FoundBy: []Finder{{".", "TestLostLeaseIsGivenBackAsLost"}, {".", "TestHistoryTellsWhatClientsDo"}},
		},
		{
			Name: "feed-loop-unbounded", Invariant: "I11", File: "history.go",
			Breaks:  "What a loop over a feed has not come to grows without end.",
			Old:     "if len(f.waiting) >= maxFeed {",
			New:     "if len(f.waiting) >= 100*maxFeed {",
			FoundBy: []Finder{{".", "TestFeedIsBounded"}},
		},
		{
			Name: "feed-outlives-close", Invariant: "", File: "history.go",
			Breaks:  "A loop over a feed goes on after the client was closed, and waits for ever.",
			Old:     "case <-c.closing:\n\t\t\treturn ErrClosed\n\t\tcase <-f.wake:",
			New:     "case <-f.wake:",
			FoundBy: []Finder{{".", "TestFeedEndsWithClose"}},
			Hang:    true,
		},
		{
			Name: "watch-sleeps-through-events", File: "cmd/holdfast/internal/cli/watch.go",
			Breaks:  "watch hears what happens, and looks at the locks only when its interval is over.",
			Old:     "rounds.Wake = wake",
			New:     "rounds.Wake = nil",
			FoundBy: []Finder{{"cmd/holdfast", "TestWatchOnFeed"}},
		},
		{
			Name: "history-off-is-success", Invariant: "I10", File: "cmd/holdfast/internal/cli/history.go",
			Breaks:  "Where there is no history, a script is told that nothing happened.",
			Old:     "exit.With(exit.Config, ",
			New:     "exit.With(exit.OK, ",
			FoundBy: []Finder{{"cmd/holdfast", "TestHistoryIsOff"}},
		},
		{
			Name: "feed-unbounded", Invariant: "I11", File: "driver/feed.go",
			Breaks:  "What waits for a listener who blocks grows without end.",
			Old:     "if len(f.waiting) >= maxWaiting {",
			New:     "if len(f.waiting) >= 100*maxWaiting {",
			FoundBy: []Finder{{"driver", "TestFeedIsBounded"}},
		},
		{
			Name: "sqlite-history-without-option", Invariant: "I11", File: "sqlitelock/group.go",
			Breaks:  "Every engine writes events, and everybody pays for them.",
			Old:     "r.t = &tx{reader: now, history: e.history, steps: all.steps}",
			New:     "r.t = &tx{reader: now, history: true, steps: all.steps}",
			FoundBy: []Finder{{"sqlitelock", "TestHistoryIsOff"}, {"sqlitelock", "TestPairCost"}},
		},
		{
			Name: "sqlite-sweep-is-silent", Invariant: "I10", File: "sqlitelock/group.go",
			Breaks:  "A lease that the sweep takes out leaves nothing in the history.",
			Old:     "all := &tx{reader: now, history: e.history}",
			New:     "all := &tx{reader: now}",
			FoundBy: []Finder{{"sqlitelock", "TestSweepWritesEvents"}},
		},
		{
			Name: "sqlite-history-never-trimmed", Invariant: "I11", File: sqlite,
			Breaks:  "A name that is used all day keeps every event of it.",
			Old:     "rand.IntN(trimEvery) == 0",
			New:     "rand.IntN(trimEvery) < 0",
			FoundBy: []Finder{{"sqlitelock", "TestHistoryIsSwept"}},
		},
		{
			Name: "sqlite-last-event-swept", Invariant: "I10", File: "sqlitelock/statements.go",
			Breaks:  "After a quiet day the numbers of events begin anew, and a feed that waits for greater ones is silent for ever.",
			Old:     "AND seq < (SELECT max(seq) FROM event)",
			New:     "AND seq <= (SELECT max(seq) FROM event)",
			FoundBy: []Finder{{"sqlitelock", "TestFeedAfterAQuietDay"}},
		},
		{
			Name: "sqlite-feed-hides-gaps", Invariant: "I10", File: "sqlitelock/feed.go",
			Breaks:  "Events that were deleted before a feed has read them are missing without a word.",
			Old:     "if rows[i].seq != last+1 {",
			New:     "if rows[i].seq < last+1 {",
			FoundBy: []Finder{{"sqlitelock", "TestFeedTellsOfGaps"}},
		},
	}
}
