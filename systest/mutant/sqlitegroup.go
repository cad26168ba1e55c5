package mutant

// sqliteGroupMutants are faults of how the engine on one file carries out
// requests together.
func sqliteGroupMutants() []Mutant {
	const group = "sqlitelock/group.go"
	by := func(test string) []Finder { return []Finder{{"sqlitelock", test}} }
	return []Mutant{
		{
			Name: "sqlite-group-of-one", File: group,
			Breaks:  "Requests that wait for the same turn go one by one, each in a transaction of its own.",
			Old:     "names > groupNames || r.alone",
			New:     "names > 0 || r.alone",
			FoundBy: by("TestGroupIsOneTransaction"),
		},
		{
			Name: "sqlite-group-unbounded", Invariant: "I7", File: group,
			Breaks:  "However many wait go in one transaction, and keep everybody else from renewing meanwhile.",
			Old:     "names > groupNames || r.alone",
			New:     "r.alone",
			FoundBy: by("TestGroupIsBounded"),
		},
		{
			Name: "sqlite-group-steps-unbounded", Invariant: "I7", File: group,
			Breaks:  "Each request of a group may hand over and purge as much as a transaction may.",
			Old:     "r.t = &tx{reader: now, history: e.history, steps: all.steps}",
			New:     "r.t = &tx{reader: now, history: e.history}",
			FoundBy: by("TestGroupSharesItsSteps"),
		},
		{
			Name: "sqlite-failure-spoils-group", Invariant: "I10", File: group,
			Breaks:  "The error of one request is the answer to all that went with it.",
			Old:     "len(group) > 1 {\n\t\t\te.separate(group)\n\t\t\treturn nil\n",
			New:     "len(group) > 1 {\n",
			FoundBy: by("TestFailureInAGroup"),
		},
		{
			Name: "sqlite-failure-is-committed", Invariant: "I10", File: group,
			Breaks:  "What a request wrote before it failed is committed with the rest of its group.",
			Old:     "\t\tif err != nil {\n\t\t\treturn group, err\n\t\t}\n\t\tall.steps",
			New:     "\t\tif err != nil && len(group) == 1 {\n\t\t\treturn group, err\n\t\t}\n\t\tall.steps",
			FoundBy: by("TestFailureInAGroup"),
		},
		{
			Name: "sqlite-failures-go-to-the-end", Invariant: "I7", File: group,
			Breaks:  "Requests whose group has failed are overtaken by those that came later.",
			Old:     "slices.Insert(l.waiting, 0, rs...)",
			New:     "append(l.waiting, rs...)",
			FoundBy: by("TestFailedGroupKeepsItsOrder"),
		},
		{
			Name: "sqlite-ended-request-carried-out", Invariant: "I5", File: group,
			Breaks:  "A request whose context has ended is carried out when its turn comes.",
			Old:     "ended := r.ctx.Err() != nil",
			New:     "ended := false",
			FoundBy: by("TestEndedWhenItsTurnComes"),
		},
		{
			Name: "sqlite-ended-leader-takes-all-along", Invariant: "I10", File: group,
			Breaks:  "The requests that wait behind one that is ended while the database is busy are answered with its error.",
			Old:     "\t\t\te.line.leave(r) // the others try for themselves\n",
			New:     "\t\t\te.line.leave(r)\n\t\t\tfor _, other := range e.line.take(true) {\n\t\t\t\tother.finish(nil, err)\n\t\t\t}\n",
			FoundBy: by("TestEndedInLine"),
		},
		{
			Name: "sqlite-left-line-and-carried-out", Invariant: "I5", File: group,
			Breaks:  "A request that was answered because its context had ended stays in line, and is granted the lock.",
			Old:     "if i >= 0 {\n\t\tl.waiting = slices.Delete(l.waiting, i, i+1)\n\t}",
			New:     "if i >= 0 {\n\t\tl.waiting[i] = &request{ctx: context.Background(), do: r.do, names: 1, done: make(chan struct{})}\n\t}",
			FoundBy: by("TestEndedInLine"),
		},
		{
			Name: "sqlite-group-not-flushed", File: group,
			Breaks:  "A record or a one-time token that goes with other requests is not flushed to the disk.",
			Old:     "|| r.durable && !durable {",
			New:     "{",
			FoundBy: by("TestDurableInAGroup"),
		},
		{
			Name: "sqlite-lost-commit-of-a-group-granted", Invariant: "I1", File: group,
			Breaks:  "Of a group whose commit fails only the first request is told so.",
			Old:     "\tfor _, r := range group {\n\t\tr.finish(r.t, err)\n\t}",
			New:     "\tfor _, r := range group {\n\t\tr.finish(r.t, err)\n\t\terr = nil\n\t}",
			FoundBy: by("TestFailedCommitOfAGroup"),
		},
		{
			Name: "sqlite-gives-way-to-nobody", Invariant: "I7", File: "sqlitelock/stint.go",
			Breaks:  "A process that writes without a pause leaves the others to find the few microseconds between its transactions.",
			Old:     "if now.Sub(e.stint.began) < stintLength {",
			New:     "if now.Sub(e.stint.began) < 1000*time.Hour {",
			FoundBy: by("TestGivesWay"),
		},
		{
			Name: "sqlite-gives-way-when-alone", File: "sqlitelock/stint.go",
			Breaks:  "A process that is alone pauses after each stint for others that are not there.",
			Old:     "e.witness.othersWait(e.path); {",
			New:     "e.witness != nil; {",
			FoundBy: by("TestGivesWay"),
		},
		{
			Name: "sqlite-waits-unheard", Invariant: "I7", File: "sqlitelock/tx.go",
			Breaks:  "A process that waits for the write lock does not say so.",
			Old:     "\te.witness.waits(e.path, true)\n",
			New:     "",
			FoundBy: by("TestWaiterSaysSo"),
		},
		{
			Name: "sqlite-still-waits-when-served", Invariant: "I7", File: "sqlitelock/tx.go",
			Breaks:  "A process that waited once makes the others pause for ever.",
			Old:     "\tdefer e.witness.waits(e.path, false)\n",
			New:     "",
			FoundBy: by("TestWaiterSaysSo"),
		},
	}
}
