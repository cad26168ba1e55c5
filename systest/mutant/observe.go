package mutant

// observeMutants are faults of what the Observer and the log are told.
func observeMutants() []Mutant {
	return []Mutant{
		{
			Name: "wait-ends-untold", Invariant: "", File: "observe.go",
			Breaks:  "A wait that ends without the lock is not told as the end of a wait: the gauge of those who wait only grows.",
			Old:     "e.AfterWait, a.waiting = a.waiting, false",
			New:     "e.AfterWait, a.waiting = a.waiting && e.Kind == Acquired, false",
			FoundBy: []Finder{{".", "TestObserverPairs"}},
		},
		{
			Name: "unanswered-release-untold", Invariant: "", File: "observe.go",
			Breaks:  "A release that the store does not answer is not told: the gauge of leases that are held only grows.",
			Old:     "case l.lost != nil: // which is told",
			New:     "case l.lost != nil, err != nil && !isLost(err):",
			FoundBy: []Finder{{".", "TestObserverPairs"}},
		},
		{
			Name: "panic-of-onwait-untold", Invariant: "", File: "acquire.go",
			Breaks:  "An acquire whose OnWait panics waits for ever, as far as the Observer knows.",
			Old:     "w.tellRefused(errAbandoned)",
			New:     "_ = errAbandoned",
			FoundBy: []Finder{{".", "TestObserverPairs"}},
		},
		{
			Name: "adopted-lease-has-the-old-key", Invariant: "", File: "lease_adopt.go",
			Breaks:  "A lease that is left and adopted is told under one key, so that two possessions are taken for one.",
			Old:     "a.key = driver.NewLeaseID() //",
			New:     "_ = a.key //",
			FoundBy: []Finder{{".", "TestObserverPairs"}},
		},
		{
			Name: "outage-ends-untold", Invariant: "", File: "observe.go",
			Breaks:  "The end of an outage is not told if the wait ends with it.",
			Old:     "a.tellOutageEnded(e.Err)\n",
			New:     "\n",
			FoundBy: []Finder{{".", "TestObserverPairs"}, {".", "TestWaitEndsInOutage"}},
		},
		{
			Name: "observers-panic-goes-through", Invariant: "", File: "internal/tell/queue.go",
			Breaks:  "A panic of an Observer ends the program.",
			Old:     "if p := recover(); p != nil {",
			New:     "if p := any(nil); p != nil {",
			FoundBy: []Finder{{"internal/tell", "TestPanicAndGoexit"}, {".", "TestPanickingObserver"}},
			Crash:   "no ",
		},
		{
			Name: "release-waits-for-the-observer", Invariant: "I9", File: "lease_release.go",
			Breaks:  "Release returns when the Observer was told of it.",
			Old:     "return l.endRelease(ctx, err)",
			New:     "defer l.client.events.Wait(context.Background(), time.Minute)\n\treturn l.endRelease(ctx, err)",
			FoundBy: []Finder{{".", "TestBlockingObserver"}},
		},
		{
			Name: "ends-are-dropped", Invariant: "", File: "internal/tell/queue.go",
			Breaks:  "If an Observer is too slow, it may miss the end of what it was told the beginning of.",
			Old:     "if !must && q.waitingLocked() >= most {",
			New:     "if q.waitingLocked() >= most {",
			FoundBy: []Finder{{"internal/tell", "TestBlocked"}},
		},
		{
			Name: "events-wait-without-bound", Invariant: "I11", File: "internal/tell/queue.go",
			Breaks:  "The events for an Observer that blocks fill the memory.",
			Old:     "if !must && q.waitingLocked() >= most {",
			New:     "if !must && q.waitingLocked() >= most && q.dropped < 0 {",
			FoundBy: []Finder{{"internal/tell", "TestBlocked"}, {".", "TestBlockingObserver"}},
		},
		{
			Name: "dropped-events-unsaid", Invariant: "", File: "internal/tell/log.go",
			Breaks:  "Nobody learns that events were dropped.",
			Old:     "if n > 0 {",
			New:     "if n < 0 {",
			FoundBy: []Finder{{"internal/tell", "TestBlocked"}},
		},
		{
			Name: "dropped-events-fill-the-log", Invariant: "", File: "internal/tell/queue.go",
			Breaks:  "An Observer that is too slow all the time has a line in the log each time.",
			Old:     "now.Sub(q.saidDrop) >= warnAgain) {",
			New:     "now.Sub(q.saidDrop) >= 0) {",
			FoundBy: []Finder{{"internal/tell", "TestDropsAreSaidOnceAMinute"}},
		},
		{
			Name: "replay-told-as-refusal", Invariant: "", File: "acquire.go",
			Breaks:  "A replay of do-once work is told as a refusal.",
			Old:     "if err != errRecorded {",
			New:     "if err != nil {",
			FoundBy: []Finder{{".", "TestReplayIsNotARefusal"}},
		},
		{
			Name: "loss-not-logged", Invariant: "", File: "observe.go",
			Breaks:  "A lease is lost and the log does not say so.",
			Old:     "l.client.logs.Tell(&e, false)\n\tl.tellOverLocked(&e)",
			New:     "l.tellOverLocked(&e)",
			FoundBy: []Finder{{".", "TestLossesAreLogged"}},
		},
	}
}
