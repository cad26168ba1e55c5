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
	}
}
