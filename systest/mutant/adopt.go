package mutant

// adoptMutants are faults of leases that go from one process to another, and of
// what is told of a wait.
func adoptMutants() []Mutant {
	return []Mutant{
		{
			Name: "adoption-from-reply", Invariant: "I3", File: "lease_adopt.go",
			Breaks:  "The deadline of an adopted lease counts from the reply, not from before the request.",
			Old:     "t, ok := a.newTerm().granted(sent, now,",
			New:     "t, ok := a.newTerm().granted(now, now,",
			FoundBy: []Finder{{".", "TestAdoptionCountsFromItsRequest/reply_is_slow"}, {".", "TestAdoptionAnsweredTooLate"}},
		},
		{
			Name: "adoption-sends-nothing", Invariant: "I3", File: "lease_adopt.go",
			Breaks:  "A lease is adopted without an extend: its deadline counts from a request that was never sent.",
			Old:     "return c.engine.Extend(ctx, []driver.ExtendRequest{{Name: a.req.Name, LeaseID: a.req.LeaseID, TTL: a.req.TTL}})[0]",
			New:     "_ = driver.ExtendRequest{}\n\t\treturn nil",
			FoundBy: []Finder{{".", "TestAdopt"}, {".", "TestAdoptOfWhatIsOver"}},
		},
		{
			Name: "keep-alive-cannot-be-read", File: "print.go",
			Breaks:  "The options of an adoption do not survive JSON, by which a script's keeper has them.",
			Old:     "return named(k, text, keepAlives)",
			New:     "return ErrInvalid",
			FoundBy: []Finder{{".", "TestOptionsThroughJSON"}},
		},
		{
			Name: "adopted-lease-leaves-no-tombstone", Invariant: "I5", File: "lease_adopt.go",
			Breaks:  "The release of an adopted lease lets a late copy of its acquire in.",
			Old:     "a.req.LeaseID, a.uncertain = leaseID, true",
			New:     "a.req.LeaseID = leaseID",
			FoundBy: []Finder{{".", "TestReleaseOfAdoptedMeetsZombies"}},
		},
		{
			Name: "adopted-behind-greater-token", Invariant: "I3", File: "lease_adopt.go",
			Breaks:  "A lease is adopted although this client has a later one of the name.",
			Old:     "if ahead != nil {\n\t\treturn nil, errOvertaken",
			New:     "if ahead != nil && l != nil {\n\t\treturn nil, errOvertaken",
			FoundBy: []Finder{{".", "TestAdoptedRivals"}},
		},
		{
			Name: "left-lease-is-renewed", Invariant: "I9", File: "lease_leave.go",
			Breaks:  "The keep-alive goes on with a lease that was left.",
			Old:     "l.state, l.lost = stateReleased, errLeft\n\t\tl.tellLeftLocked()\n\t}\n\tl.mu.Unlock()\n\tif was != stateHeld {",
			New:     "l.lost = errLeft\n\t\tl.term.keepAlive = true\n\t}\n\tl.mu.Unlock()\n\tif was == stateHeld {\n\t\treturn nil\n\t}\n\tif was != stateHeld {",
			FoundBy: []Finder{{".", "TestLeaveDuringRenewal"}},
		},
		{
			Name: "left-lease-is-released", Invariant: "", File: "lease_leave.go",
			Breaks:  "Release, and Close, give back a lease that was left.",
			Old:     "l.state, l.lost = stateReleased, errLeft",
			New:     "l.state, l.lost = stateLost, errLeft",
			FoundBy: []Finder{{".", "TestLeave"}, {".", "TestLeaveInDo"}},
		},
		{
			Name: "once-adopt-takes-any-result", Invariant: "", File: "once_begin.go",
			Breaks:  "A do-once run that is over is told the result of another run as its own.",
			Old:     " && status.Result.Token == token {",
			New:     " {",
			FoundBy: []Finder{{".", "TestOnceAdoptAfterTheEnd"}},
		},
		{
			Name: "panic-leaves-a-place", Invariant: "I5", File: "acquire.go",
			Breaks:  "An acquire whose OnWait panics leaves its place in the queue.",
			Old:     "if !returned {",
			New:     "if !returned && w.opts.OnWait == nil {",
			FoundBy: []Finder{{".", "TestOnWaitPanics"}},
		},
		{
			Name: "same-wait-told-again", Invariant: "", File: "acquire_state.go",
			Breaks:  "OnWait is told of each refresh, though nothing has changed.",
			Old:     "if w.shown != nil && w.shown.stillTrue(s) {",
			New:     "if w.shown != nil && w.shown.stillTrue(s) && w.waits == false {",
			FoundBy: []Finder{{".", "TestOnWaitTellsPlaces"}},
		},
		{
			Name: "next-lease-of-the-holder-untold", Invariant: "", File: "acquire_state.go",
			Breaks:  "OnWait is not told when the same holder gets the lock anew.",
			Old:     "old.Since <= s.Since && ",
			New:     "",
			FoundBy: []Finder{{".", "TestOnWaitTellsHolder"}},
		},
		{
			Name: "end-of-outage-untold", Invariant: "", File: "acquire_state.go",
			Breaks:  "OnWait is not told that the store answers again.",
			Old:     "(old.Outage == nil) == (s.Outage == nil)",
			New:     "(old.Outage != nil || s.Outage == nil)",
			FoundBy: []Finder{{".", "TestOnWaitTellsOutage"}},
		},
	}
}
