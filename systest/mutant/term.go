package mutant

// termMutants are faults in the arithmetic of a lease, and in the timetable that
// follows it.
func termMutants() []Mutant {
	return []Mutant{
		{
			Name: "slept-place-is-trusted-whole", Invariant: "I3", File: "lease_term.go",
			Breaks:  "A waiter that slept in the queue trusts a short lease for its whole TTL, though less is left of its place.",
			Old:     "queued.add(trusted(waiterTTL)).asOf(now), true",
			New:     "queued.add(trusted(waiterTTL)), true",
			FoundBy: []Finder{{".", "TestTerm"}, {".", "TestTermAgainstStores"}},
		},
		{
			Name: "late-hand-over-used", Invariant: "I3", File: "lease_term.go",
			Breaks:  "News of a hand-over becomes a lease although the place is over.",
			Old:     ".asOf(now), true\n\tif now.reached(t.deadline) {",
			New:     ".asOf(now), true\n\tif now.reached(t.deadline) && false {",
			FoundBy: []Finder{{".", "TestTerm"}},
		},
		{
			Name: "grant-ignores-suspension", Invariant: "I3", File: "lease_term.go",
			Breaks:  "A machine that slept while it waited for a grant counts the TTL by the clock that stood still.",
			Old:     "t.deadline = t.deadline.asOf(now)\n\tt.heard,",
			New:     "t.heard,",
			FoundBy: []Finder{{".", "TestTerm"}},
		},
		{
			Name: "expiry-from-the-request", File: "lease_term.go",
			Breaks:  "The store is taken to end a lease one TTL after the request was sent, though it may have come late.",
			Old:     "t.expiry = now.mono.Add(t.longest)",
			New:     "t.expiry = t.began.mono.Add(t.longest)",
			FoundBy: []Finder{{".", "TestTerm"}, {".", "TestTermAgainstStores"}},
		},
		{
			Name: "hand-over-is-capped", File: "lease_term.go",
			Breaks:  "A lease that was handed over is never given its TTL if MaxHold is as long.",
			Old:     "t.capped = t.maxHold == t.ttl && !t.provisional",
			New:     "t.capped = t.maxHold == t.ttl",
			FoundBy: []Finder{{".", "TestTerm"}},
		},
		{
			Name: "remaining-sleeps-with-the-machine", Invariant: "I8", File: "lease_term.go",
			Breaks:  "Remaining does not count the time for which the machine was suspended.",
			Old:     "return max(0, now.until(t.deadline))",
			New:     "return max(0, t.deadline.mono.Sub(now.mono))",
			FoundBy: []Finder{{".", "TestTermAnswers"}},
		},
		{
			Name: "stalled-worker-is-renewed", File: "lease_term.go",
			Breaks:  "A lease is renewed although its worker has stopped reporting progress.",
			Old:     "&& !t.capped && !t.stalled",
			New:     "&& !t.capped",
			FoundBy: []Finder{{".", "TestTermAnswers"}},
		},
		{
			Name: "last-renewal-is-not-the-last", File: "lease_term.go",
			Breaks:  "A renewal that asks for all that MaxHold leaves is followed by others.",
			Old:     "min(ttl, left), ttl >= left",
			New:     "min(ttl, left), ttl > left",
			FoundBy: []Finder{{".", "TestTermAnswers"}},
		},
		{
			Name: "part-of-a-millisecond-asked-for", File: "lease_term.go",
			Breaks:  "What MaxHold leaves is asked for in parts of a millisecond.",
			Old:     "add(t.maxHold)).Truncate(time.Millisecond)",
			New:     "add(t.maxHold))",
			FoundBy: []Finder{{".", "TestTermAnswers"}},
		},
		{
			Name: "pause-leads-beyond-max-hold", File: "lease_term.go",
			Breaks:  "A pause between working out a renewal and sending it leads beyond MaxHold.",
			Old:     "t.maxHold > 0 && end.mono.After(last.asOf(now).mono)",
			New:     "t.maxHold > time.Hour*1e6 && end.mono.After(last.asOf(now).mono)",
			FoundBy: []Finder{{".", "TestTerm"}},
		},
		{
			Name: "shorter-extension-confirms", File: "lease_term.go",
			Breaks:  "A lease that was handed over is left without its TTL once it was extended by less.",
			Old:     "t.provisional && x.ttl < t.ttl && !x.capped",
			New:     "t.provisional && x.ttl < 0 && !x.capped",
			FoundBy: []Finder{{".", "TestTerm"}},
		},
		{
			Name: "old-deadline-ignores-suspension", Invariant: "I3", File: "lease_term.go",
			Breaks:  "A renewal leaves a deadline as it was before the machine slept, because it seems to be the later one.",
			Old:     "between them.\n\tt.deadline = t.deadline.asOf(now)",
			New:     "between them.",
			FoundBy: []Finder{{".", "TestTerm"}},
		},
		{
			Name: "failure-puts-a-renewal-off", Invariant: "I9", File: "lease_term.go",
			Breaks:  "A renewal that failed puts off another that is due sooner.",
			Old:     "t.renewAt = earlier(t.renewAt, now.mono.Add(pause))",
			New:     "t.renewAt = now.mono.Add(pause)",
			FoundBy: []Finder{{".", "TestTerm"}},
		},
		{
			Name: "request-under-way-forgotten", File: "lease_term.go",
			Breaks:  "A release is repeated for too short a time if a renewal is under way.",
			Old:     "if underway {",
			New:     "if underway && false {",
			FoundBy: []Finder{{".", "TestTermAnswers"}},
		},
		{
			Name: "min-hold-is-rounded-down", File: "lease_term.go",
			Breaks:  "A name is open up to a millisecond before MinHold is over.",
			Old:     "return max(0, ceilMS(now.until(t.began.add(t.minHold))))",
			New:     "return max(0, now.until(t.began.add(t.minHold)).Truncate(time.Millisecond))",
			FoundBy: []Finder{{".", "TestTermAnswers"}},
		},
		{
			Name: "moved-item-keeps-its-turn", Invariant: "I3", File: "internal/schedule/timetable.go",
			Breaks:  "What is due sooner than it was stays behind the others in the timetable.",
			Old:     "heap.Fix((*byTime[T])(t), e.index-1)",
			New:     "_ = heap.Fix",
			FoundBy: []Finder{{"internal/schedule", "TestTimetable"}},
		},
		{
			Name: "timer-waits-for-the-last", Invariant: "I3", File: "internal/schedule/timetable.go",
			Breaks:  "What was put in front of all others waits for the timer of the one behind it.",
			Old:     "return e.index == 1",
			New:     "return len(t.items) == 1",
			FoundBy: []Finder{{"internal/schedule", "TestTimetable"}},
		},
	}
}
