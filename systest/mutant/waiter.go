package mutant

// waiterMutants are faults of package holdfast: of waiting, and of several
// names at once.
func waiterMutants() []Mutant {
	return []Mutant{
		{
			Name: "hand-over-trusted-from-news", Invariant: "I3", File: "wait.go",
			Breaks:  "A lease that was handed over is trusted from when the news came, not from when the place was last renewed.",
			Old:     "end := w.queued.add(trusted(w.req.WaiterTTL))",
			New:     "end := now.add(trusted(w.req.WaiterTTL))",
			FoundBy: []Finder{{".", "TestHandedOverLeaseIsTrustedNoLongerThanItLasts"}},
		},
		{
			Name: "stale-news-believed", Invariant: "I3", File: "wait.go",
			Breaks:  "News of a place that was lost is taken for news of the present one.",
			Old:     "if news.Token != 0 && !w.uncertain {",
			New:     "if news.Token != 0 {",
			FoundBy: []Finder{{".", "TestStaleNewsIsNotBelieved"}},
		},
		{
			Name: "waiter-spins", Invariant: "I7", File: "usher.go",
			Breaks:  "A waiter asks the store again as often as it is told to look.",
			Old:     "lookAgain = 10 * time.Millisecond",
			New:     "lookAgain = 10 * time.Microsecond",
			FoundBy: []Finder{{".", "TestWaiterNeverSpins"}},
		},
		{
			Name: "lost-news-is-never-found", Invariant: "I7", File: "wait.go",
			Breaks:  "A waiter that finds by a refresh that it was handed the lock does not notice.",
			Old:     "case r.reply.Err == nil && r.reply.Outcome == driver.Granted:",
			New:     "case r.reply.Err == nil && r.reply.Outcome == driver.Granted && w.client == nil:",
			FoundBy: []Finder{{".", "TestLostNewsIsFoundByRefresh"}},
		},
		{
			Name: "places-are-not-called-off", Invariant: "I7", File: "acquire.go",
			Breaks:  "A waiter that gives up keeps its place, and is handed the lock.",
			Old:     "if a.uncertain || !a.queued.mono.IsZero() {",
			New:     "if a.uncertain {",
			FoundBy: []Finder{{".", "TestWaiterThatGivesUpLetsTheNextPass"}},
		},
		{
			Name: "no-roll-back", Invariant: "I5", File: "gather.go",
			Breaks:  "AcquireAll that fails keeps the locks that it had taken by then.",
			Old:     "_ = releaseAll(ctx, g.leases) // goes on in the background where it fails",
			New:     "_ = ctx",
			FoundBy: []Finder{{".", "TestAcquireAllLeavesNothing"}},
		},
		{
			Name: "caller-decides-order", Invariant: "", File: "gather.go",
			Breaks:  "AcquireAll takes the locks in the order of its caller, so that two calls can wait for each other.",
			Old:     "for i, name := range slices.Sorted(slices.Values(names)) {",
			New:     "for i, name := range slices.Clone(names) {",
			FoundBy: []Finder{{".", "TestAcquireAllCannotDeadlock"}},
			Hang:    true,
		},
	}
}

// workMutants are faults of what is built on leases: do-once work and one-time
// tokens.
func workMutants() []Mutant {
	return []Mutant{
		{
			Name: "once-ignores-fingerprint", Invariant: "", File: "once.go",
			Breaks:  "A key that is used again for another request is answered with the result of the first.",
			Old:     "if there != \"\" && ours != \"\" && there != ours {",
			New:     "if there != \"\" && ours != \"\" && there != ours && there == ours {",
			FoundBy: []Finder{{".", "TestOnceFingerprintOfDone"}},
		},
		{
			Name: "complete-is-not-repeated", Invariant: "I6", File: "complete.go",
			Breaks:  "A result whose first request gets no answer is not stored again.",
			Old:     "if permanent(err) || !backoff.sleep(ctx) {",
			New:     "if permanent(err) || ctx != nil {",
			FoundBy: []Finder{{".", "TestCompleteIsRepeated"}},
		},
		{
			Name: "redeem-repeats-as-another", Invariant: "I6", File: "onetime/redeem.go",
			Breaks:  "A redeem that is repeated after a lost reply has another ID, so that the payload is lost.",
			Old:     "reply, err = s.vault.Redeem(ctx, req)",
			New:     "req.By = driver.NewLeaseID()\n\t\treply, err = s.vault.Redeem(ctx, req)",
			FoundBy: []Finder{{"onetime", "TestLostRequestsAndReplies"}},
		},
	}
}
