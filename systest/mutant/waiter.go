package mutant

// waiterMutants are faults of package holdfast: of waiting, and of several
// names at once.
func waiterMutants() []Mutant {
	return []Mutant{
		{
			Name: "hand-over-trusted-from-news", Invariant: "I3", File: "lease_term.go",
			Breaks:  "A lease that was handed over is trusted from when the news came, not from when the place was last renewed.",
			Old:     "= now, queued.add(",
			New:     "= now, now.add(",
			FoundBy: []Finder{{".", "TestHandedOverLeaseIsTrustedNoLongerThanItLasts"}},
		},
		{
			Name: "stale-news-believed", Invariant: "I3", File: "acquire_wait.go",
			Breaks:  "Notice of a place that was lost is taken for news of the present one.",
			Old:     "if notice.Token != 0 && !w.uncertain {",
			New:     "if notice.Token != 0 {",
			FoundBy: []Finder{{".", "TestStaleNoticeIsNotBelieved"}},
		},
		{
			Name: "waiter-spins", Invariant: "I7", File: "internal/places/places.go",
			Breaks:  "A waiter asks the store again as often as it is told to look.",
			Old:     "LookAgain = 10 * time.Millisecond",
			New:     "LookAgain = 10 * time.Microsecond",
			FoundBy: []Finder{{".", "TestWaiterNeverSpins"}},
		},
		{
			Name: "head-sleeps-through-expiry", Invariant: "I7", File: "internal/places/places.go",
			Breaks:  "The first of the queue does not look when the lease in the way ends by itself.",
			Old:     "if w.Place == 1 && w.ExpiresIn != driver.Never {",
			New:     "if w.Place == 0 && w.ExpiresIn != driver.Never {",
			FoundBy: []Finder{{".", "TestLostNoticeIsFoundByRefresh"}},
		},
		{
			Name: "places-are-not-cancelled", Invariant: "I7", File: "acquire.go",
			Breaks:  "A waiter that gives up keeps its place, and is handed the lock.",
			Old:     "if a.uncertain || !a.queued.mono.IsZero() {",
			New:     "if a.uncertain {",
			FoundBy: []Finder{{".", "TestWaiterThatGivesUpLetsTheNextPass"}},
		},
		{
			Name: "no-roll-back", Invariant: "I5", File: "acquire_all.go",
			Breaks:  "AcquireAll that fails keeps the locks that it had taken by then.",
			Old:     "_ = releaseAll(ctx, g.leases) // goes on in the background where it fails",
			New:     "_ = ctx",
			FoundBy: []Finder{{".", "TestAcquireAllLeavesNothing"}},
		},
		{
			Name: "caller-decides-order", Invariant: "", File: "acquire_all.go",
			Breaks:  "AcquireAll takes the locks in the order of its caller, so that two calls can wait for each other.",
			Old:     "for i, name := range slices.Sorted(slices.Values(names)) {",
			New:     "for i, name := range slices.Clone(names) {",
			FoundBy: []Finder{{".", "TestAcquireAllCannotDeadlock"}},
			Hang:    true,
		},
		{
			Name: "place-counts-from-reply", Invariant: "I3", File: "internal/places/places.go",
			Breaks:  "A place counts from the answer to its refresh, and so does the lease that it becomes.",
			Old:     "k.answerLocked(p, Refresh[I]{sent, replies[i]})",
			New:     "k.answerLocked(p, Refresh[I]{k.Now(), replies[i]})\n\t\t_ = sent",
			FoundBy: []Finder{{".", "TestHandedOverLeaseIsTrustedNoLongerThanItLasts"}},
		},
		{
			Name: "lost-place-keeps-its-id", Invariant: "I5", File: "acquire_attempt.go",
			Breaks:  "A waiter that lost its place asks for another under the same lease ID.",
			Old:     "w.req.LeaseID, w.uncertain, w.queued, w.handed = driver.NewLeaseID(), false, instant{}, false",
			New:     "w.uncertain, w.queued, w.handed = false, instant{}, false",
			FoundBy: []Finder{{".", "TestLateGrantIsCancelled"}},
		},
		{
			Name: "acquire-all-deadline-from-reply", Invariant: "I3", File: "acquire_all.go",
			Breaks:  "The deadlines of AcquireAll count from the reply, not from before the request.",
			Old:     ".granted(sent, now, ",
			New:     ".granted(now, now, ",
			FoundBy: []Finder{{".", "TestAcquireAllErrors"}},
		},
		{
			Name: "closed-client-acquires-all", Invariant: "", File: "acquire_all.go",
			Breaks:  "AcquireAll returns leases of a client that was closed meanwhile.",
			Old:     "if err == nil && c.isClosed() {",
			New:     "if err == nil && c.isClosed() && err != nil {",
			FoundBy: []Finder{{".", "TestCloseMeetsGrant"}},
		},
	}
}

// workMutants are faults of what is built on leases: do-once work and one-time
// tokens.
func workMutants() []Mutant {
	return []Mutant{
		{
			Name: "once-awaits-another-request", Invariant: "", File: "acquire_attempt.go",
			Breaks:  "Once with Await waits for the result of work that answers another request.",
			Old:     "if w.req.Once { // the result",
			New:     "if w.req.Once && !w.waits { // the result",
			FoundBy: []Finder{{".", "TestOnceFingerprintOfWorkInProgress"}},
		},
		{
			Name: "once-ignores-fingerprint", Invariant: "", File: "once.go",
			Breaks:  "A key that is used again for another request is answered with the result of the first.",
			Old:     "if there != \"\" && ours != \"\" && there != ours {",
			New:     "if there != \"\" && ours != \"\" && there != ours && there == ours {",
			FoundBy: []Finder{{".", "TestOnceFingerprintOfDone"}},
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
