package mutant

// lossMutants are faults of package holdfast: of how soon a holder knows that
// its lease is over.
func lossMutants() []Mutant {
	return []Mutant{
		{
			Name: "earlier-lease-goes-on", Invariant: "I3", File: "rivals.go",
			Breaks:  "A client trusts an exclusive lease although it was granted a later one of the same name.",
			Old:     "behind = other",
			New:     "_ = other",
			FoundBy: []Finder{{".", "TestLaterLeaseEndsEarlier"}, {".", "TestHandedOverLeaseEndsEarlier"}},
		},
		{
			Name: "grant-behind-greater-token-used", Invariant: "I3", File: "rivals.go",
			Breaks:  "A grant whose answer comes after that of a later one becomes a lease.",
			Old:     "if other.token > l.token {",
			New:     "if other.token > l.token && false {",
			FoundBy: []Finder{{".", "TestGrantBehindGreaterToken"}, {".", "TestAcquireAllBehindGreaterToken"}},
		},
		{
			Name: "long-leases-are-left-alone", Invariant: "", File: "pace.go",
			Breaks:  "A lease is renewed by its TTL alone, so that a loss is known late if that is long.",
			Old:     "return earlier(due, l.confirmed.Add(l.client.keeper.pace()))",
			New:     "return due",
			FoundBy: []Finder{{".", "TestKeepAliveTellsLongLeases"}, {".", "TestPace"}},
		},
		{
			Name: "pace-knows-no-bound", Invariant: "", File: "pace.go",
			Breaks:  "However many leases a client has, each is renewed every 5 s.",
			Old:     "return max(hurriedPause, time.Duration(k.size.Load())*(time.Second/hurriedPerSecond))",
			New:     "return max(hurriedPause, time.Duration(min(k.size.Load(), 1))*(time.Second/hurriedPerSecond))",
			FoundBy: []Finder{{".", "TestPace"}},
		},
		{
			Name: "timer-sleeps-with-the-machine", Invariant: "I3", File: "keepalive.go",
			Breaks:  "Nobody looks whether the machine was suspended until the next timer fires.",
			Old:     "pause = min(pause, suspensionLook)",
			New:     "pause = min(pause, 60*suspensionLook)",
			FoundBy: []Finder{{".", "TestContextEndsAfterSuspension"}},
		},
		{
			Name: "suspension-moves-no-deadline", Invariant: "I3", File: "suspension.go",
			Breaks:  "After a suspension timers go by the clock that stood still.",
			Old:     "l.deadline = end",
			New:     "_ = end",
			FoundBy: []Finder{{".", "TestShortSuspension"}},
		},
		{
			Name: "answer-ignores-suspension", Invariant: "I3", File: "keepalive.go",
			Breaks:  "A renewal that was under way while the machine was suspended is trusted for its whole TTL from then on.",
			Old:     "if end = end.asOf(now); end.mono.After(l.deadline.mono) {",
			New:     "if end.mono.After(l.deadline.mono) {",
			FoundBy: []Finder{{".", "TestSuspensionDuringRequest"}},
		},
		{
			Name: "observer-delays-losses", Invariant: "I3", File: "keepalive.go",
			Breaks:  "The Observer is told of one loss before the next lease ends.",
			Old:     "reports = append(reports, l.drop(l.expiredCause()))",
			New:     "k.client.report([]report{l.drop(l.expiredCause())})",
			FoundBy: []Finder{{".", "TestSlowObserverDelaysNoLoss"}},
		},
		{
			Name: "outage-taken-for-busy", Invariant: "I10", File: "outage.go",
			Breaks:  "A wait that ends while the store does not answer ends as held by whoever had the lock before.",
			Old:     "if a.inTheWay == nil || silent {",
			New:     "if a.inTheWay == nil || silent && false {",
			FoundBy: []Finder{{".", "TestWaitEndsInOutage"}},
		},
		{
			Name: "refresh-failures-unseen", Invariant: "", File: "wait.go",
			Breaks:  "A waiter in the queue does not notice that the store does not answer.",
			Old:     "w.countFailure(r.sent.mono)\n\t\t\t\tw.suffer(r.reply.Err)",
			New:     "_ = r",
			FoundBy: []Finder{{".", "TestOutageIsTold"}},
		},
		{
			Name: "wait-needs-a-store", Invariant: "", File: "outage.go",
			Breaks:  "A wait ends early if the store is not there when it begins.",
			Old:     "if wait && (a.inTheWay != nil || a.bound > 0) {",
			New:     "if wait && a.inTheWay != nil {",
			FoundBy: []Finder{{".", "TestWaitForStore"}},
		},
		{
			Name: "held-error-is-stale", Invariant: "I10", File: "outage.go",
			Breaks:  "What is left of the lease in the way is as it was when the store last said so.",
			Old:     "left = max(0, left-time.Since(a.blockedAt))",
			New:     "left = max(0, left)",
			FoundBy: []Finder{{".", "TestHeldErrorIsAged"}},
		},
		{
			Name: "release-forgets-extend", Invariant: "", File: "release.go",
			Breaks:  "A release is repeated for the TTL only, though Extend has made the lease longer.",
			Old:     "return l.expiry",
			New:     "return earlier(l.expiry, time.Now().Add(l.opts.TTL))",
			FoundBy: []Finder{{".", "TestReleaseGoesOnUntilTheLatestExpiry"}},
		},
		{
			Name: "late-release-keeps-longer", Invariant: "", File: "calloff.go",
			Breaks:  "A release that is repeated keeps the name closed for what was left of MinHold when it was sent first.",
			Old:     "var backoff backoff\n\tfor {\n\t\treq := request()",
			New:     "var backoff backoff\n\treq := request()\n\tfor {",
			FoundBy: []Finder{{".", "TestLateReleaseKeepsNoLonger"}},
		},
		{
			Name: "release-of-lost-lease-waits", Invariant: "", File: "release.go",
			Breaks:  "After a loss Release, and so Do, waits for a store that does not answer.",
			Old:     "if lost := l.lostBefore(); lost != nil {",
			New:     "if lost := l.lostBefore(); lost != nil {\n\t\t_ = l.client.releaseOnce(ctx, l.releaseRequest())",
			FoundBy: []Finder{{".", "TestReleaseOfLostLeaseDoesNotWait"}},
		},
		{
			Name: "release-outlasts-lease", Invariant: "", File: "release.go",
			Breaks:  "Release waits for the store when the lease is over by itself already.",
			Old:     "end := earlier(time.Now().Add(l.client.opts.RequestTimeout), l.expiresBy())",
			New:     "end := time.Now().Add(l.client.opts.RequestTimeout)",
			FoundBy: []Finder{{".", "TestReleaseDoesNotOutlastTheLease"}},
		},
		{
			Name: "close-heeds-ended-context", Invariant: "I5", File: "client.go",
			Breaks:  "Close gives up at once if its context has ended, as after a signal.",
			Old:     "grace := c.opts.RequestTimeout",
			New:     "grace := c.opts.RequestTimeout * 0",
			FoundBy: []Finder{{".", "TestCloseUnderEndedContext"}, {"systest", "TestEndedProgramLeavesNothing"}},
		},
	}
}
