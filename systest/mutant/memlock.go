package mutant

// conformance returns a requirement of enginetest as an engine's package runs
// it.
func conformance(dir, requirement string) Finder {
	return Finder{dir, "TestConformance/" + requirement}
}

// memlockMutants are faults of the reference engine.
func memlockMutants() []Mutant {
	return []Mutant{
		{
			Name: "mem-token-repeats", Invariant: "I2", File: "driver/rules/rules.go",
			Breaks:  "Two leases within a microsecond get the same token.",
			Old:     "token := max(last+1, least)",
			New:     "token := max(last, least)",
			FoundBy: []Finder{{"driver/rules", "TestTokens"}, conformance("memlock", "TokensGrowOverRelease")},
		},
		{
			Name: "mem-repeat-draws-token", Invariant: "I6", File: "memlock/acquire.go",
			Breaks:  "A repeat of a granted request draws a new token.",
			Old:     "lengthen(&v.own.expiry, now.Add(req.TTL))\n",
			New:     "lengthen(&v.own.expiry, now.Add(req.TTL))\n\t\t\tl.lastToken++\n\t\t\tv.own.token = l.lastToken\n",
			FoundBy: []Finder{conformance("memlock", "RepeatIsGrantedAgain")},
		},
		{
			Name: "mem-extend-shortens", Invariant: "I6", File: "memlock/lock.go",
			Breaks:  "A request with a shorter TTL shortens the lease.",
			Old:     "if t.After(*end) {",
			New:     "if t != *end {",
			FoundBy: []Finder{conformance("memlock", "ExtendNeverShortens"), conformance("memlock", "RepeatNeverShortens")},
		},
		{
			Name: "mem-extend-by-name", Invariant: "I4", File: "memlock/lock.go",
			Breaks:  "Whoever knows the name extends and releases the lease of its present holder.",
			Old:     "if h.id == id && !h.released {",
			New:     "if id != \"\" && !h.released {",
			FoundBy: []Finder{conformance("memlock", "ExtendOfStaleLeavesSuccessor"), conformance("memlock", "ReleaseOfStaleLeavesSuccessor")},
		},
		{
			Name: "mem-barging", Invariant: "I7", File: "driver/rules/rules.go",
			Breaks:  "A new request that fits is granted in front of those who wait.",
			Old:     "return !v.Queued && v.Fits(n) }",
			New:     "return v.Fits(n) }",
			FoundBy: []Finder{conformance("memlock", "SharedDoesNotOvertakeExclusive")},
		},
		{
			Name: "mem-release-serves-nobody", Invariant: "I7", File: "memlock/lease.go",
			Breaks:  "A release does not hand the lock over: the next waiter finds out when it looks.",
			Old:     "e.serveLocked(l, now)\n\tif h == nil {",
			New:     "if h == nil {",
			FoundBy: []Finder{conformance("memlock", "WatchTellsGrant")},
		},
		{
			Name: "mem-complete-without-lease", Invariant: "I4", File: "memlock/record.go",
			Breaks:  "Do-once work stores its result although its lease is lost.",
			Old:     "return driver.ErrLost // INVARIANT I4",
			New:     "h = &lease{}",
			FoundBy: []Finder{conformance("memlock", "CompleteOfLostIsLost"), {".", "TestOnceZombieIsRefused"}},
		},
		{
			Name: "mem-redeem-does-not-consume", Invariant: "", File: "memlock/vault.go",
			Breaks:  "A one-time token can be redeemed again.",
			Old:     "d.state, d.taker, d.taken = driver.Redeemed, req.By, now",
			New:     "d.taker, d.taken = req.By, now",
			FoundBy: []Finder{conformance("memlock", "RedeemHandsOutOnce"), {"onetime", "TestOneOfManyGetsThePayload"}},
		},
		{
			Name: "mem-acquire-all-takes-some", Invariant: "I5", File: "memlock/acquire.go",
			Breaks:  "AcquireAll in one step keeps the locks in front of the one that it could not have.",
			Old:     "var v verdict\n\t\tif err := e.judgeLocked(",
			New:     "var v verdict\n\t\t_, _ = e.acquireLocked(req, now)\n\t\tif err := e.judgeLocked(",
			FoundBy: []Finder{conformance("memlock", "AcquireAllTakesAllOrNone")},
		},
		{
			Name: "token-past-the-last", Invariant: "I2", File: "driver/token.go",
			Breaks:  "A clock that is past the greatest token gives tokens that are not exact everywhere.",
			Old:     "if least > MaxToken {",
			New:     "if least > MaxToken && least == 0 {",
			FoundBy: []Finder{{"driver/rules", "TestClockPastLastToken"}},
		},
		{
			Name: "handed-over-token-past-the-last", Invariant: "I2", File: "driver/rules/rules.go",
			Breaks:  "Whoever is handed the lock by a clock that is past the greatest token gets one that is not exact everywhere.",
			Old:     "if token > driver.MaxToken {",
			New:     "if token > driver.MaxToken && token == 0 {",
			FoundBy: []Finder{{"driver/rules", "TestTokens"}, {"memlock", "TestHandOverPastLastToken"}},
		},
		{
			Name: "mem-stuck-head-is-overlooked", Invariant: "I2", File: "memlock/lock.go",
			Breaks:  "Whoever comes after a waiter for whom there is no token is told that the lock is held, by nobody.",
			Old:     "v.Recorded, v.Stuck = l.record != nil, l.stuck",
			New:     "v.Recorded, v.Stuck = l.record != nil, nil",
			FoundBy: []Finder{{"memlock", "TestHandOverPastLastToken"}},
		},
	}
}
