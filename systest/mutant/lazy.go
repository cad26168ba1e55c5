package mutant

import "slices"

// lazyMutants are faults of what is made only when somebody needs it: contexts, and
// what tells of the end of a release, the channels of watches, timers, and readings of a
// clock.
func lazyMutants() []Mutant {
	return slices.Concat(lazyLimitMutants(), lazyLeaseMutants(), lazyWatchMutants(), lazyTimerMutants(), lazyClockMutants())
}

func lazyLimitMutants() []Mutant {
	limit := []Finder{{"internal/ask", "TestLimitIsAsTheStandardOne"}}
	return []Mutant{
		{
			Name: "unwatched-request-has-no-limit", File: "internal/ask/limit.go",
			Breaks:  "A request whose context is only looked at now and then never reaches its limit.",
			Old:     "l.caller.Err() == nil && time.Until(l.end) > 0 {",
			New:     "l.caller.Err() == nil {",
			FoundBy: limit,
		},
		{
			Name: "unwatched-request-outlives-its-caller", File: "internal/ask/limit.go",
			Breaks:  "A request whose context is only looked at does not end with its caller's.",
			Old:     "!l.canceled && l.caller.Err() == nil && time",
			New:     "!l.canceled && time",
			FoundBy: limit,
		},
		{
			Name: "stopped-request-times-out", Invariant: "I10", File: "internal/ask/limit.go",
			Breaks:  "A request's context that was stopped says later that there was no answer in time.",
			Old:     "case l.canceled: // whatever",
			New:     "case l.canceled && l.caller == nil: // whatever",
			FoundBy: limit,
		},
		{
			Name: "stop-hides-the-callers-end", Invariant: "I10", File: "internal/ask/limit.go",
			Breaks:  "A request's context that is stopped after its caller's has ended forgets why that did.",
			Old:     "if l.made == nil && l.caller.Err() == nil {",
			New:     "if l.made == nil {",
			FoundBy: limit,
		},
		{
			Name: "stop-forgets-who-waits", File: "internal/ask/limit.go",
			Breaks:  "Stopping a request's context does not end the one that somebody waits for.",
			Old:     "if l.made == nil && l.caller.Err() == nil {",
			New:     "if l.caller.Err() == nil {",
			FoundBy: limit,
		},
		{
			Name: "limit-hides-an-earlier-deadline", File: "internal/ask/limit.go",
			Breaks:  "A request's context names its own limit as the deadline though its caller's comes first.",
			Old:     "ok && end.Before(l.end) {",
			New:     "ok && end.Before(l.end) && false {",
			FoundBy: limit,
		},
		{
			Name: "limit-has-its-callers-cause", Invariant: "I10", File: "internal/ask/limit.go",
			Breaks:  "The limit of a request ends its context without the cause that tells it from the caller's deadline.",
			Old:     "return l.make().Value(key)",
			New:     "return l.caller.Value(key)",
			FoundBy: limit,
		},
		{
			Name: "limit-is-made-at-once", File: "internal/ask/limit.go",
			Breaks:  "Each request has a timer, even if it is answered before anybody waits.",
			Old:     "return l, l.cancel",
			New:     "l.make()\n\treturn l, l.cancel",
			FoundBy: []Finder{{"internal/ask", "TestLimitCostsNothingUnused"}},
		},
	}
}

func lazyLeaseMutants() []Mutant {
	context := []Finder{{".", "TestLeaseContextIsAsAStandardOne"}}
	return []Mutant{
		{
			Name: "unwatched-context-outlives-its-lease", Invariant: "I3", File: "lease_context.go",
			Breaks:  "A context that is only looked at does not end with its lease.",
			Old:     "live := l.ctx == nil && l.state == stateHeld",
			New:     "live := l.ctx == nil",
			FoundBy: context,
		},
		{
			Name: "late-context-never-ends", Invariant: "I3", File: "lease_context.go",
			Breaks:  "Whoever waits for the context of a lease that is over already waits for ever.",
			Old:     "if l.state != stateHeld {\n\t\t\tl.end(",
			New:     "if false {\n\t\t\tl.end(",
			FoundBy: context,
		},
		{
			Name: "context-that-is-waited-for-never-ends", Invariant: "I3", File: "lease_context.go",
			Breaks:  "The end of a lease does not end the context that somebody waits for.",
			Old:     "if end != nil {",
			New:     "if end != nil && cause == nil {",
			FoundBy: append(context, Finder{".", "TestKeepAliveTellsLossAtDeadline"}),
			Hang:    true,
		},
		{
			Name: "late-context-forgets-the-loss", Invariant: "I10", File: "lease_context.go",
			Breaks:  "A context that is first waited for after the loss of its lease says that it was released.",
			Old:     "l.end(l.endCauseLocked())",
			New:     "l.end(context.Canceled)",
			FoundBy: context,
		},
		{
			Name: "context-ends-with-its-callers", File: "lease_context.go",
			Breaks:  "A lease's context ends with the context that the lease was acquired under.",
			Old:     "context.WithCancelCause(context.WithoutCancel(l.values))",
			New:     "context.WithCancelCause(l.values)",
			FoundBy: context,
		},
		{
			Name: "context-without-its-cause", Invariant: "I10", File: "lease_context.go",
			Breaks:  "A lease's context ends with the cause of its caller's.",
			Old:     "return c.make().Value(key)",
			New:     "return c.values.Value(key)",
			FoundBy: context,
		},
		{
			Name: "context-is-made-at-once", File: "lease_context.go",
			Breaks:  "A context whose lease is asked for is made, though nobody waits for it.",
			Old:     "if key == (heldKey{}) {",
			New:     "if c.make(); key == (heldKey{}) {",
			FoundBy: []Finder{{".", "TestLeaseContextCostsNothingUnused"}},
		},
		{
			Name: "second-release-waits-for-ever", File: "lease_release.go",
			Breaks:  "Whoever calls Release again while the first call is under way is never answered.",
			Old:     "if l.released != nil {\n\t\tclose",
			New:     "if l.released != nil && err != nil {\n\t\tclose",
			FoundBy: []Finder{{".", "TestReleaseTogether"}},
			Hang:    true,
		},
		{
			Name: "late-release-waits-for-ever", File: "lease_release.go",
			Breaks:  "Whoever calls Release again after the first call waits for its end, which nobody tells any more.",
			Old:     "if l.state == stateReleased {",
			New:     "if l.state == stateReleased && l.released != nil {",
			FoundBy: []Finder{{".", "TestReleaseTogether"}},
			Hang:    true,
		},
		{
			Name: "release-waits-beyond-the-renewals", File: "lease_release.go",
			Breaks:  "A release that found a renewal under way does not hear of its end, and waits for the request timeout.",
			Old:     "if l.landed != nil && l.term.underway == 0 {",
			New:     "if l.landed != nil && l.term.underway < 0 {",
			FoundBy: []Finder{{".", "TestReleaseWaitsForRenewals"}},
		},
		{
			Name: "each-lease-keeps-its-holder", File: "holder.go",
			Breaks:  "Each lease keeps what the store was told of its holder, though all of a client's say the same.",
			Old:     "if h.Reason == \"\" && h.Labels == nil &&",
			New:     "if h.Reason != \"\" && h.Labels == nil &&",
			FoundBy: []Finder{{".", "TestLeaseMemory"}},
		},
		{
			Name: "clients-holder-is-not-checked", File: "holder.go",
			Breaks:  "A holder that cannot be shown on a terminal is stored, unless the acquire gives a reason.",
			Old:     "return h, c.holderErr",
			New:     "return h, nil",
			FoundBy: []Finder{{".", "TestClientsHolder"}},
		},
		{
			Name: "clients-reason-is-everybodys", File: "client.go",
			Breaks:  "The reason and the labels of Options.Holder are told of acquisitions that give none.",
			Old:     `o.Holder.Reason, o.Holder.Labels = "", nil`,
			New:     `o.Holder.Reason, o.Holder.Labels = o.Holder.Reason, o.Holder.Labels`,
			FoundBy: []Finder{{".", "TestClientsHolder"}},
		},
	}
}

func lazyWatchMutants() []Mutant {
	return []Mutant{
		{
			Name: "notice-before-listening-is-lost", Invariant: "I7", File: "driver/mailbox/mailbox.go",
			Breaks:  "Whoever begins to listen to a watch does not hear what it was told before.",
			Old:     "1); w.told {",
			New:     "1); w.told && w.unread.Token == 0 {",
			FoundBy: []Finder{{"driver/mailbox", "TestNoticeBeforeListening"}},
		},
		{
			Name: "call-to-look-replaces-early-grant", Invariant: "I7", File: "driver/mailbox/mailbox.go",
			Breaks:  "A notice to look takes the place of a grant that came before anybody listened.",
			Old:     "return w.unread, w.told",
			New:     "return w.unread, false",
			FoundBy: []Finder{{"driver/mailbox", "TestNoticeBeforeListening"}},
		},
		{
			Name: "stop-stops-earlier-watches", Invariant: "I7", File: "driver/mailbox/mailbox.go",
			Breaks:  "Whoever stops a watch stops those of the lease ID that began before it.",
			Old:     "*p = w.next",
			New:     "*p = nil",
			FoundBy: []Finder{{"driver/mailbox", "TestStop"}},
		},
		{
			Name: "each-watch-has-a-channel", File: "driver/mailbox/mailbox.go",
			Breaks:  "An acquire that does not have to wait makes a channel for notices.",
			Old:     "w.box, w.id, w.next = b, id, i.watches",
			New:     "w.box, w.id, w.next, w.c = b, id, i.watches, make(chan driver.Notice, 1)",
			FoundBy: []Finder{{"driver/mailbox", "TestWatchCost"}},
		},
	}
}

func lazyTimerMutants() []Mutant {
	return []Mutant{
		{
			Name: "timer-is-not-set-for-what-comes-first", Invariant: "I3", File: "internal/schedule/timetable.go",
			Breaks:  "A timetable whose timer is set already does not set it for what is due before that.",
			Old:     "(t.fires.IsZero() || at.Before(t.fires))",
			New:     "t.fires.IsZero()",
			FoundBy: []Finder{{"internal/schedule", "TestTimetable"}},
		},
		{
			Name: "timer-is-set-once", Invariant: "I3", File: "internal/schedule/timetable.go",
			Breaks:  "A timetable that was empty when its timer fired never sets it again.",
			Old:     "if t.fires = (time.Time{}); len(t.slots) == 0 {",
			New:     "if len(t.slots) == 0 {",
			FoundBy: []Finder{{"internal/schedule", "TestTimetableTicks"}},
		},
	}
}

func lazyClockMutants() []Mutant {
	return []Mutant{
		{
			Name: "boot-time-is-read-once", Invariant: "I3", File: "clock_boot.go",
			Breaks:  "A suspension is not noticed after the first reading of the boot-time clock.",
			Old:     ">= b.fresh && !b.look()",
			New:     ">= time.Hour && !b.look()",
			FoundBy: []Finder{{".", "TestBootReader"}, {".", "TestBootReaderForMany"}, {".", "TestValidAfterSuspension"}},
		},
		{
			Name: "pause-passes-for-a-suspension", Invariant: "I3", File: "clock_boot.go",
			Breaks:  "A pause of the process while it reads the boot-time clock is taken for time in which the machine was suspended.",
			Old:     "ahead := int64(boot - now); ; {",
			New:     "ahead := int64(boot - before); ; {",
			FoundBy: []Finder{{".", "TestBootReader"}},
		},
		{
			Name: "boot-time-of-a-slow-reading", Invariant: "I3", File: "clock_boot.go",
			Breaks:  "A reading of the boot-time clock with a pause in it, which may be older than it seems, is used again.",
			Old:     "		if now-before < bootFresh {\n			b.read.Store(int64(now)) // after what was read\n",
			New:     "		b.read.Store(int64(now))\n		if now-before < bootFresh {\n",
			FoundBy: []Finder{{".", "TestBootReader"}},
		},
		{
			Name: "boot-time-goes-back", Invariant: "I3", File: "clock_boot.go",
			Breaks:  "A reading of the boot-time clock that took its time undoes one that noticed a suspension.",
			Old:     "if ahead <= old || b.ahead",
			New:     "if b.ahead",
			FoundBy: []Finder{{".", "TestBootReader"}},
		},
	}
}
