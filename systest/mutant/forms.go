package mutant

// formsMutants are faults of the forms that run work under a lock, and of what they say.
func formsMutants() []Mutant {
	return []Mutant{
		{
			Name: "trydo-waits", Invariant: "", File: "do.go",
			Breaks:  "TryDo waits for a lock that somebody else has.",
			Old:     "call(ctx, c, name, opts, false, withoutValue(work))",
			New:     "call(ctx, c, name, opts, true, withoutValue(work))",
			FoundBy: []Finder{{".", "TestTryDoSkipsAtOnce"}},
		},
		{
			Name: "nil-work-is-run", Invariant: "", File: "do.go",
			Breaks:  "Work that is nil is found out when the lock has been taken, by a panic.",
			Old:     "if work == nil {\n\t\treturn v, opError",
			New:     "if false {\n\t\treturn v, opError",
			FoundBy: []Finder{{".", "TestNoWork"}},
		},
		{
			Name: "silent-store-is-asked-again", Invariant: "", File: "acquire_outage.go",
			Breaks:  "Several names whose Wait is over are asked for again, under a context that has ended, when the store has not answered.",
			Old:     "return a.opts.Wait > 0 && !time.Now().Before(a.waitEnd())",
			New:     "return false",
			FoundBy: []Finder{{".", "TestShortestWait/AcquireAll,_queue"}},
		},
		{
			Name: "wait-for-several-outlasts-its-end", Invariant: "", File: "acquire.go",
			Breaks:  "Several names are waited for until the second request has had its time, too, although the Wait is over.",
			Old:     "if !w.tried.IsZero() {",
			New:     "if false {",
			FoundBy: []Finder{{".", "TestShortestWait/AcquireAll,_queue"}},
		},
		{
			Name: "ended-wait-forgets-who-holds", Invariant: "I10", File: "acquire_outage.go",
			Breaks:  "A wait that the caller's context ends says only that.",
			Old:     "case known:\n\t\treturn fmt.Errorf(",
			New:     "case known:\n\t\treturn ask.ContextError(ctx)\n\tcase false:\n\t\treturn fmt.Errorf(",
			FoundBy: []Finder{{".", "TestEndedWaitSaysWhoHolds/deadline/Acquire,_queue"}, {".", "TestEndedLeadSaysWhoLeads"}},
		},
		{
			Name: "ended-wait-forgets-its-context", Invariant: "I10", File: "acquire_outage.go",
			Breaks:  "A wait that the caller's context ends is held, and not that context's end.",
			Old:     "\"%w while it was %w\"",
			New:     "\"%v while it was %w\"",
			FoundBy: []Finder{{".", "TestEndedWaitSaysWhoHolds/canceled/AcquireAll,_one_by_one"}},
		},
		{
			Name: "ended-once-is-held", Invariant: "I10", File: "acquire_outage.go",
			Breaks:  "Do-once work that is awaited until the context ends is held, instead of in progress.",
			Old:     "if a.req.Once {",
			New:     "if false {",
			FoundBy: []Finder{{".", "TestEndedWaitSaysWhoHolds/deadline/Once,_queue"}},
		},
		{
			Name: "loss-hides-behind-another", Invariant: "I10", File: "do.go",
			Breaks:  "Do does not say why its lease was lost if the work returns the loss of another, or one without a reason.",
			Old:     "case errors.Is(err, why): // it says so itself",
			New:     "case isLost(err):",
			FoundBy: []Finder{{".", "TestLossSaysWhy/MaxHold,_do,_meets_another_loss"}, {".", "TestLossSaysWhy/broken,_once,_meets_another_loss"}},
		},
		{
			Name: "loss-on-two-lines", Invariant: "", File: "do.go",
			Breaks:  "Do tells the loss and the error of the work in two lines, of which a log shows one.",
			Old:     "while the work ran: %w; the work returned: %w",
			New:     "while the work ran: %w\\n%w",
			FoundBy: []Finder{{".", "TestLossSaysWhy"}},
		},
		{
			Name: "release-does-not-ask-why", Invariant: "I10", File: "lease_release.go",
			Breaks:  "Work that ends before it has heard of a break is not told who broke the lock, and why.",
			Old:     "if isLost(err) {\n\t\terr = l.whyGone(ctx)",
			New:     "if false {\n\t\terr = l.whyGone(ctx)",
			FoundBy: []Finder{{".", "TestLossFoundAtTheEndSaysWhy"}},
		},
		{
			Name: "refused-result-does-not-ask-why", Invariant: "I10", File: "once_complete.go",
			Breaks:  "Do-once work whose result is refused after a break is not told who broke the lock, and why.",
			Old:     "if isLost(err) && lost == nil {",
			New:     "if false {",
			FoundBy: []Finder{{".", "TestLossFoundAtTheEndSaysWhy"}},
		},
		{
			Name: "holders-are-printed-with-their-lease-ids", Invariant: "I4", File: "driver/print.go",
			Breaks:  "Whoever logs what Inspect says logs what can release the lease.",
			Old:     "fmt.Sprintf(\"%s, token %d\", h.Possession(), h.Token)",
			New:     "fmt.Sprintf(\"%s, token %d %s\", h.Possession(), h.Token, string(h.LeaseID))",
			FoundBy: []Finder{{".", "TestPrintingGivesNoLeaseID"}},
		},
		{
			Name: "events-have-their-lease-id-in-json", Invariant: "I4", File: "observe/observe.go",
			Breaks:  "Whoever logs events as JSON logs what can release the lease.",
			Old:     "LeaseID driver.LeaseID `json:\"-\"`",
			New:     "LeaseID driver.LeaseID",
			FoundBy: []Finder{{".", "TestPrintingGivesNoLeaseID"}},
		},
		{
			Name: "no-client-panics", Invariant: "", File: "client.go",
			Breaks:  "Whoever has no client, because New has failed and nobody looked, gets a panic and no error.",
			Old:     "if c == nil || c.engine == nil {",
			New:     "if false {",
			FoundBy: []Finder{{".", "TestNothingIsNoPanic"}, {".", "TestWrongUses"}},
		},
		{
			Name: "no-engine-panics", Invariant: "", File: "driver/features.go",
			Breaks:  "Whoever has no engine, because opening it has failed and nobody looked, gets a panic and no error.",
			Old:     "!v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()",
			New:     "false && v.IsValid()",
			FoundBy: []Finder{{".", "TestNothingIsNoPanic"}},
		},
		{
			Name: "leader-without-work", Invariant: "", File: "lead.go",
			Breaks:  "A leader whose work is nil finds out when it leads.",
			Old:     "if err == nil && fn == nil {",
			New:     "if false {",
			FoundBy: []Finder{{".", "TestWrongUses"}},
		},
	}
}
