package mutant

// lineMutants are faults of how the engine for Redis treats its connections.
func lineMutants() []Mutant {
	return []Mutant{
		{
			Name: "redis-silent-line-is-kept", Invariant: "I9", File: "redislock/switchboard.go",
			Breaks:  "A connection that owes an answer is kept although a new one to the same place is answered.",
			Old:     "\t\tcase <-time.After(grace):\n\t\t\tb.giveUp(l.addr, 0)\n",
			New:     "\t\tcase <-time.After(grace):\n",
			FoundBy: []Finder{{"systest", "TestHalfOpenConnectionsLoseNoLease"}},
		},
		{
			Name: "redis-hung-server-loses-its-lines", File: "redislock/switchboard.go",
			Breaks:  "A connection that owes an answer is given up although the server answers nobody.",
			Old:     "switch answers := !l.isHurried() && b.answers(l); {",
			New:     "switch answers := true; {",
			FoundBy: []Finder{{"redislock", "TestHungServerKeepsItsConnections"}}, Hang: true,
		},
		{
			Name: "redis-release-stays-unknown", File: "rediscore/again.go",
			Breaks:  "A release whose connection was given up is not sent again on the new one.",
			Old:     "if !errors.Is(err, ErrGivenUp) || ctx.Err() != nil {",
			New:     "if true || errors.Is(err, ErrGivenUp) {",
			FoundBy: []Finder{{"systest", "TestHalfOpenConnectionsLoseNoLease"}, {"rediscore", "TestUnknownStaysUnknown"}},
		},
		{
			Name: "redis-repeat-hides-the-first", Invariant: "I10", File: "rediscore/again.go",
			Breaks:  "A release that may have ended the lease, and whose repeat found none, is told as a loss.",
			Old:     "\tif request() == nil {\n\t\treturn nil\n\t}\n\treturn err\n",
			New:     "\treturn request()\n",
			FoundBy: []Finder{{"rediscore", "TestUnknownStaysUnknown"}},
		},
		{
			Name: "redis-vanished-machine-is-waited-for", File: "redislock/open.go",
			Breaks:  "Behind sentinels, connections to a machine that has vanished are kept as long as others.",
			Old:     "return sentinelSilence",
			New:     "return 0",
			FoundBy: []Finder{{"systest", "TestSentinelMachineVanishes"}},
		},
		{
			Name: "redis-vanished-sentinel-is-not-missed", File: "redislock/switchboard.go",
			Breaks:  "When the master falls silent, nobody looks whether the sentinel beside it does as well.",
			Old:     "if b.haste > 0 && all[other.addr] == nil {",
			New:     "if false && all[other.addr] == nil {",
			FoundBy: []Finder{{"redislock", "TestSilenceIsLookedForEverywhere"}},
		},
		{
			Name: "redis-moved-for-ever", File: "redislock/parse_url.go",
			Breaks:  "A request is sent to and fro between nodes that disagree, for as long as its context lasts.",
			Old:     "\t\topts.ClusterOption.MaxMovedRedirections = maxRedirections\n",
			New:     "",
			FoundBy: []Finder{{"redislock", "TestRedirectionsAreBounded"}},
		},
		{
			Name: "redis-close-says-goodbye", File: "redislock/rueidis.go",
			Breaks:  "Close asks each server once more, and waits for its answer.",
			Old:     "\t\tc.board.close()\n",
			New:     "",
			FoundBy: []Finder{{"redislock", "TestRoundTripsOfAShortLife"}},
		},
		{
			Name: "redis-close-waits-for-the-client", File: "rediscore/engine.go",
			Breaks:  "Close of an engine on the caller's client waits for a silent server.",
			Old:     "\tcase <-time.After(closeLimit):\n",
			New:     "",
			FoundBy: []Finder{{"redislock", "TestCloseIsQuick"}},
		},
		{
			Name: "redis-segments-of-any-size", File: "redislock/parse_url.go",
			Breaks:  "Segments are as large as both ends believe that the path takes.",
			Old:     ", Control: smallSegments}",
			New:     "}",
			FoundBy: []Finder{{"redislock", "TestSegmentsPassEveryPath"}},
		},
		{
			Name: "redis-connects-once", File: "redislock/dial.go",
			Breaks:  "A connection whose first packet was lost is waited for, and no other is tried.",
			Old:     "\tfor {\n\t\tgo try()\n",
			New:     "\tgo try()\n\tfor {\n",
			FoundBy: []Finder{{"redislock", "TestConnectTriesAgain"}}, Hang: true,
		},
	}
}

// deletionMutants are faults of how the engine for Redis hears of deletions.
func deletionMutants() []Mutant {
	return []Mutant{
		{
			Name: "redis-deletion-is-not-told", File: "rediscore/deletions.go",
			Breaks:  "The server's messages about keys that have changed are dropped.",
			Old:     "\t\tdelete(t.known, key)\n\t\tnames = append(names, k.name)\n",
			New:     "\t\tdelete(t.known, key)\n",
			FoundBy: []Finder{{"systest", "TestDeletionIsTold"}, {"redislock", "TestOwnRenewalsAreNotTold"}},
		},
		{
			Name: "redis-own-renewal-is-told", File: "rediscore/deletions.go",
			Breaks:  "A renewal of our own is taken for a change by somebody else.",
			Old:     "\t\tdelete(t.known, t.keys.Lock(r.Name))\n",
			New:     "\t\t_ = r\n",
			FoundBy: []Finder{{"redislock", "TestOwnRenewalsAreNotTold"}},
		},
		{
			Name: "redis-shared-is-tracked", File: "rediscore/deletions.go",
			Breaks:  "Each shared lease that comes or goes makes all the others look.",
			Old:     "case lost || several: // the",
			New:     "case lost: // the",
			FoundBy: []Finder{{"redislock", "TestOwnRenewalsAreNotTold"}},
		},
		{
			Name: "redis-tells-all-the-time", File: "rediscore/deletions.go",
			Breaks:  "A lock that many wait for is looked at with each change.",
			Old:     "\tif !told {\n",
			New:     "\tif !told || true {\n",
			FoundBy: []Finder{{"redislock", "TestChangesAreToldSeldom"}},
		},
		{
			Name: "redis-connecting-ends-with-another", File: "redislock/rueidis.go",
			Breaks:  "Whoever waits for the connection that another call makes fails when the time of that call is over.",
			Old:     "if endedWithAnother(ctx, result.NonRedisError()) {",
			New:     "if false {",
			FoundBy: []Finder{{"redislock", "TestConnectingForAnother"}},
		},
	}
}
