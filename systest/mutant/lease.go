package mutant

// leaseMutants are faults of package holdfast: of taking, keeping, losing and
// giving back one lease.
func leaseMutants() []Mutant {
	return []Mutant{
		{
			Name: "deadline-from-reply", Invariant: "I3", File: "acquire.go",
			Breaks:  "The deadline of a new lease counts from the reply, not from before the request.",
			Old:     "end := sent.add(trusted(w.opts.TTL))",
			New:     "end := now.add(trusted(w.opts.TTL))",
			FoundBy: []Finder{{".", "TestDeadlineCountsFromBeforeTheRequest"}},
		},
		{
			Name: "renewal-from-reply", Invariant: "I3", File: "extend.go",
			Breaks:  "The deadline of a renewed lease counts from the reply, not from before the request.",
			Old:     "l.raiseLocked(sent.add(trusted(r.ttl)), r.final)",
			New:     "l.raiseLocked(now.add(trusted(r.ttl)), r.final)",
			FoundBy: []Finder{{".", "TestKeepAliveWithSlowStore"}},
		},
		{
			Name: "no-margin", Invariant: "I3", File: "clock.go",
			Breaks:  "A lease is trusted for its whole TTL, with no margin for clocks that differ in rate.",
			Old:     "return ttl - ttl/driftDivisor - driftFloor",
			New:     "return ttl",
			FoundBy: []Finder{{".", "TestDeadlineCountsFromBeforeTheRequest"}},
		},
		{
			Name: "late-grant-used", Invariant: "I3", File: "acquire.go",
			Breaks:  "A grant whose answer comes after its deadline becomes a lease.",
			Old:     "if now.reached(end) {",
			New:     "if now.reached(end) && false {",
			FoundBy: []Finder{{".", "TestLateGrantIsNotUsed"}},
		},
		{
			Name: "context-outlives-deadline", Invariant: "I3", File: "keepalive.go",
			Breaks:  "Nobody ends the lease's context when its deadline comes.",
			Old:     "l.lose(l.expiredCause())",
			New:     "_ = l",
			FoundBy: []Finder{{".", "TestKeepAliveTellsLossAtDeadline"}},
			Hang:    true,
		},
		{
			Name: "valid-sleeps-with-the-machine", Invariant: "I8", File: "clock.go",
			Breaks:  "Valid does not count the time for which the machine was suspended.",
			Old:     "return !i.mono.Before(end.mono) || i.boot >= end.boot && i.boot != 0",
			New:     "return !i.mono.Before(end.mono)",
			FoundBy: []Finder{{".", "TestValidAfterSuspension"}},
		},
		{
			Name: "keep-alive-gives-up", Invariant: "I9", File: "extend.go",
			Breaks:  "The keep-alive takes the first renewal that fails for the loss of the lease.",
			Old:     "case live && isLost(err):",
			New:     "case live && err != nil:",
			FoundBy: []Finder{{".", "TestKeepAliveSurvivesBlips"}},
		},
		{
			Name: "release-overtakes-renewal", Invariant: "I9", File: "release.go",
			Breaks:  "Release is sent while a renewal is under way, which may then reach the store after it.",
			Old:     "case <-l.landed:\n\tcase <-ctx.Done():\n\t}\n\treq :=",
			New:     "case <-l.landed:\n\tcase <-ctx.Done():\n\tdefault:\n\t}\n\treq :=",
			FoundBy: []Finder{{".", "TestReleaseWaitsForRenewals"}},
		},
		{
			Name: "renewal-after-release", Invariant: "I9", File: "extend.go",
			Breaks:  "A lease is extended although its release has begun.",
			Old:     "if l.state != stateHeld || now.reached(l.deadline) {",
			New:     "if l.state == stateReleasing {\n\t\tl.inflight = 1 << 20 // nobody waits for it\n\t}\n\tif l.state == stateLost || now.reached(l.deadline) {",
			FoundBy: []Finder{{".", "TestExtendDuringRelease"}},
		},
		{
			Name: "loss-is-not-final", Invariant: "I3", File: "extend.go",
			Breaks:  "A renewal that is answered after the deadline revives the lease.",
			Old:     "live := l.state == stateHeld && !now.reached(l.deadline)",
			New:     "live := l.state == stateHeld",
			FoundBy: []Finder{{".", "TestRenewalAnsweredAfterSuspension"}},
		},
		{
			Name: "max-hold-ignored", Invariant: "", File: "extend.go",
			Breaks:  "The keep-alive renews a lease beyond MaxHold.",
			Old:     "if l.opts.MaxHold == 0 {",
			New:     "if l.opts.MaxHold >= 0 {",
			FoundBy: []Finder{{".", "TestMaxHold"}},
			Hang:    true,
		},
		{
			Name: "retry-draws-lease-id", Invariant: "I6", File: "acquire.go",
			Breaks:  "An acquire that is repeated after an error has another lease ID, so that a grant unseen is not found again.",
			Old:     "\ta.countFailure(sent)\n\treturn harmless(ctx, err)",
			New:     "\ta.countFailure(sent)\n\ta.req.LeaseID = driver.NewLeaseID()\n\treturn harmless(ctx, err)",
			FoundBy: []Finder{{".", "TestAcquireRetriesWithTheSameLeaseID"}},
		},
		{
			Name: "nothing-is-called-off", Invariant: "I5", File: "acquire.go",
			Breaks:  "An acquire that ends without an answer is not called off.",
			Old:     "\t\ta.callOff()\n\t\ta.uncertain, a.queued",
			New:     "\t\ta.uncertain, a.queued",
			FoundBy: []Finder{{".", "TestUnheardGrantIsCalledOff"}},
		},
		{
			Name: "call-off-leaves-no-tombstone", Invariant: "I5", File: "calloff.go",
			Breaks:  "To call an acquire off only releases its lease, so that a copy of the request that arrives later is granted.",
			Old:     "LeaseID: a.req.LeaseID, Cancel: true}",
			New:     "LeaseID: a.req.LeaseID}",
			FoundBy: []Finder{{".", "TestZombieAcquireMeetsTombstone"}},
		},
		{
			Name: "unknown-taken-for-certain", Invariant: "I10", File: "failure.go",
			Breaks:  "An error that leaves the outcome open is taken for one that says that nothing was done.",
			Old:     "return permanent(err) || errors.Is(err, ErrUnavailable)",
			New:     "return permanent(err) || err != nil",
			FoundBy: []Finder{{".", "TestUnheardGrantIsCalledOff"}, {".", "TestExtendErrors"}},
		},
	}
}
