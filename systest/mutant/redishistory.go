package mutant

// redisHistoryMutants are faults of what the engine for Redis writes down of what
// happens, and tells.
func redisHistoryMutants() []Mutant {
	const lua = "rediscore/internal/lua/"
	by := func(test string) []Finder { return []Finder{{"redislock", test}} }
	suite := func(requirement string) []Finder { return by("TestConformanceWithHistory/" + requirement) }
	return []Mutant{
		{
			Name: "redis-history-for-all", Invariant: "", File: lua + "lua.go",
			Breaks:  "Engines without history have scripts that write it, and pay for it.",
			Old:     "	if !k.history {\n		return \"\"\n	}\n	return text\n",
			New:     "	return text\n",
			FoundBy: []Finder{{"rediscore/internal/lua", "TestNothingOfHistoryWithoutIt"}},
		},
		{
			Name: "redis-history-misses-expiry", Invariant: "I10", File: lua + "plain_acquire.lua",
			Breaks:  "Whoever takes a lock after a lease has run out writes nothing down about that.",
			Old:     " or n % 2 == 0 or n > MOST_ITEMS",
			New:     " or n > MOST_ITEMS",
			FoundBy: suite("HistoryTellsOfExpiry"),
		},
		{
			Name: "redis-history-reader-misses-expiry", Invariant: "I10", File: lua + "queue.lua",
			Breaks:  "Whoever reads the history of a name of which a lease has run out sees it as held.",
			Old:     "  if not s.busy then\n    --@ lapse(s)\n",
			New:     "  if not s.busy then\n",
			FoundBy: suite("HistoryTellsOfExpiry"),
		},
		{
			Name: "redis-history-spoils-release", Invariant: "I6", File: lua + "plain_release.lua",
			Breaks:  "A lease that is given back is said to be lost, because its end cannot be written down.",
			Old:     "heard or type(n) ~= 'number' or n % 2 == 1",
			New:     "heard or n % 2 == 1",
			FoundBy: by("TestHistorySpoilsNothing"),
		},
		{
			Name: "redis-history-spoils-hand-over", Invariant: "I6", File: lua + "remember.lua",
			Breaks:  "An engine that may not write history fails after the step that it was to write down.",
			Old:     "local n = #events > 0 and redis.pcall('RPUSH'",
			New:     "local n = #events > 0 and redis.call('RPUSH'",
			FoundBy: by("TestHistorySpoilsNothing"),
		},
		{
			Name: "redis-history-unbounded", Invariant: "I11", File: lua + "feed.lua",
			Breaks:  "A name that is used all day keeps every event of it.",
			Old:     "  if n > MOST_ITEMS then\n    redis.pcall('LTRIM'",
			New:     "  if n > 100 * MOST_ITEMS then\n    redis.pcall('LTRIM'",
			FoundBy: by("TestHistoryIsShort"),
		},
		{
			Name: "redis-history-for-ever", Invariant: "I11", File: lua + "feed.lua",
			Breaks:  "The history of a name that nobody uses any more stays.",
			Old:     "  redis.pcall('PEXPIRE', history, HISTORY_MEMORY)\n",
			New:     "",
			FoundBy: by("TestHistoryIsShort"),
		},
		{
			Name: "redis-history-of-long-lease-goes", Invariant: "", File: lua + "plain_release.lua",
			Breaks:  "The end of a lease that was held for a day is forgotten with its beginning.",
			Old:     " or not string.find(value, hour, 36, true) then",
			New:     " then",
			FoundBy: by("TestHistoryIsShort"),
		},
		{
			Name: "redis-history-loss-looks-released", Invariant: "I10", File: "rediscore/plain.go",
			Breaks:  "A holder that lost its lease seems to have given it back in time.",
			Old:     "req.KeepFor > 0 || req.Lost && p.history ||",
			New:     "req.KeepFor > 0 ||",
			FoundBy: suite("HistoryTellsOfLoss"),
		},
		{
			Name: "redis-history-heirs-leave", Invariant: "I7", File: lua + "remember.lua",
			Breaks:  "Whoever is handed the lock is said to have left the queue as well.",
			Old:     "if p and not (s.heirs and s.heirs[p.id]) then",
			New:     "if p then",
			FoundBy: by("TestHistoryOfReaders"),
		},
		{
			Name: "redis-feed-shows-lease-ids", Invariant: "I4", File: lua + "feed.lua",
			Breaks:  "Whoever may listen to events hears the IDs of leases, with which it can end them.",
			Old:     "    event = string.gsub(event, '^(R?%d* ?)THIS_LAYOUT %x+ ', '%1THIS_LAYOUT ')\n",
			New:     "",
			FoundBy: by("TestFeedIsQuiet"),
		},
		{
			Name: "redis-feed-to-nobody", Invariant: "", File: lua + "feed.lua",
			Breaks:  "Each step is published though nobody listens, in a cluster to all nodes.",
			Old:     "'heard')[2] ~= 0",
			New:     "'heard')[2] ~= nil",
			FoundBy: by("TestFeedIsQuiet"),
		},
		{
			Name: "redis-feed-hides-gap", Invariant: "I10", File: "rediscore/feed.go",
			Breaks:  "A feed whose connection broke goes on as if it had heard everything.",
			Old:     "	defer v.missed(life)\n",
			New:     "",
			FoundBy: by("TestFeedIsQuiet"),
		},
		{
			Name: "redis-feed-of-one-node", Invariant: "", File: "rediscore/feed.go",
			Breaks:  "In a cluster only the events of one node are told.",
			Old:     "	if !v.store.cluster {\n		return false\n	}\n	for address",
			New:     "	if v.store.cluster {\n		return false\n	}\n	for address",
			FoundBy: by("TestHistoryOnCluster"),
		},
	}
}
