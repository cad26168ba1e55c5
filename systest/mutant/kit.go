package mutant

// kitMutants are faults of the kit for tests of programs, and of what it stands on: a kit
// that does not do what it says lets users believe in their programs.
func kitMutants() []Mutant {
	const dir = "holdfasttest"
	return []Mutant{
		{
			Name: "kit-sees-no-left-lease", File: "holdfasttest/leases.go",
			Breaks:  "A lease that a program never releases passes its test.",
			Old:     "case l.over && (l.had || !l.cancel):",
			New:     "case l.over && l.name == \"\":",
			FoundBy: []Finder{{dir, "TestCaught/never_releases"}, {dir, "TestLeft"}},
		},
		{
			Name: "kit-forgives-lost-lease", File: "holdfasttest/leases.go",
			Breaks:  "A holder that never releases the lease that it lost passes its test.",
			Old:     "case l.over || l.left:",
			New:     "case l.over || l.left || !live:",
			FoundBy: []Finder{{dir, "TestCaught/forgets_what_it_lost"}, {dir, "TestLeft"}},
		},
		{
			Name: "kit-names-the-library", File: "holdfasttest/leases.go",
			Breaks:  "The kit names a line of the library as the one that acquired a lease.",
			Old:     "} else if inside && f.Function",
			New:     "} else if !inside && f.Function",
			FoundBy: []Finder{{dir, "TestNamesTheLine"}},
		},
		{
			Name: "kit-lose-keeps-the-lock", File: "holdfasttest/kit.go",
			Breaks:  "Lose tells the holder, and lets nobody else have the lock.",
			Old:     "if k.store.Release(context.Background(), driver.ReleaseRequest{Name: name, LeaseID: h.LeaseID}) == nil {",
			New:     "if h.LeaseID != \"\" {",
			FoundBy: []Finder{{dir, "TestLose/virtual"}},
		},
		{
			Name: "kit-lose-tells-nobody", File: "holdfasttest/kit.go",
			Breaks:  "Lose gives the lock to the next, and its holder hears of that at the next renewal.",
			Old:     "k.losses.Tell(driver.Loss{Name: name, LeaseID: id, Err: driver.ErrLost})",
			New:     "_ = id",
			FoundBy: []Finder{{dir, "TestLose/virtual"}, {dir, "TestLoseAll"}},
		},
		{
			Name: "kit-elsewhere-for-ever", File: "holdfasttest/kit.go",
			Breaks:  "A lock that is held elsewhere is held for longer than the test says.",
			Old:     "TTL: d, Holder: elsewhere}",
			New:     "TTL: 10 * d, Holder: elsewhere}",
			FoundBy: []Finder{{dir, "TestHoldElsewhere"}},
		},
		{
			Name: "kit-held-by-anybody", File: "holdfasttest/await.go",
			Breaks:  "Held is true of a lock that somebody else has.",
			Old:     "ours := k.leases[h.LeaseID] != nil",
			New:     "ours := h.LeaseID != \"\"",
			FoundBy: []Finder{{dir, "TestHoldElsewhere"}},
		},
		{
			Name: "kit-remembers-for-ever", File: "holdfasttest/leases.go",
			Breaks:  "A lock that is being released counts as held, and who has released what he lost as one who goes on.",
			Old:     "delete(k.leases, id)\n",
			New:     "",
			FoundBy: []Finder{{dir, "TestCaught/ignores_a_loss"}, {dir, "TestHeld"}},
		},
		{
			Name: "kit-forbids-to-leave", File: "holdfasttest/leases.go",
			Breaks:  "A lease that was left for another process to adopt fails the test.",
			Old:     "case l.over || l.left:",
			New:     "case l.over:",
			FoundBy: []Finder{{dir, "TestNothingLeft/left_to_be_adopted/virtual"}},
		},
		{
			Name: "kit-forbids-to-cancel", File: "holdfasttest/leases.go",
			Breaks:  "A lease of which nobody has heard, and which the library cancels, fails the test.",
			Old:     "case l.over && (l.had || !l.cancel):",
			New:     "case l.over:",
			FoundBy: []Finder{{dir, "TestGrantedUnheard"}},
		},
		{
			Name: "kit-stop-is-not-awaited", File: "holdfasttest/await.go",
			Breaks:  "AwaitStop is content with a holder that goes on.",
			Old:     "if l.name == name && l.lost {",
			New:     "if l.name == name && l.lost && d < 0 {",
			FoundBy: []Finder{{dir, "TestCaught/ignores_a_loss"}},
		},
		{
			Name: "kit-broken-store-works", File: "holdfasttest/trouble.go",
			Breaks:  "A broken store carries out what it refuses.",
			Old:     "if broken != nil {\n\t\treturn broken\n\t}\n\terr := send()",
			New:     "err := send()\n\tif broken != nil {\n\t\treturn broken\n\t}",
			FoundBy: []Finder{{dir, "TestBreakStore"}},
		},
		{
			Name: "kit-drops-requests", File: "holdfasttest/trouble.go",
			Breaks:  "DropReplies loses the requests with their answers.",
			Old:     "err := send()\n\tif drop {\n\t\treturn errNoReply\n\t}\n\treturn err",
			New:     "if drop {\n\t\treturn errNoReply\n\t}\n\treturn send()",
			FoundBy: []Finder{{dir, "TestDroppedIsCarriedOut"}},
		},
		{
			Name: "kit-slow-store-is-ahead", File: "holdfasttest/trouble.go",
			Breaks:  "A slow store carries a request out at once, and even if its sender gives up.",
			Old:     "if slow > 0 && !ask.Sleep(ctx, slow) {\n\t\treturn ctx.Err()\n\t}",
			New:     "if slow > 0 {\n\t\t_ = send()\n\t\tif !ask.Sleep(ctx, slow) {\n\t\t\treturn ctx.Err()\n\t\t}\n\t}",
			FoundBy: []Finder{{dir, "TestSlowStore"}},
		},
		{
			Name: "hook-lets-revoke-past", File: "internal/hook/methods.go",
			Breaks:  "A request of a test's engine goes past what the test does to requests.",
			Old:     "return ask(ctx, e, Request{Method: \"Revoke\"}, digest, e.Forward.Revoke)",
			New:     "return e.Forward.Revoke(ctx, digest)",
			FoundBy: []Finder{{"internal/hook", "TestEveryRequestIsHooked"}},
		},
	}
}
