package mutant

// foreignMutants are faults of what is done for clients of other libraries.
func foreignMutants() []Mutant {
	return []Mutant{
		{
			Name: "redis-never-yields", Invariant: "I7", File: "rediscore/internal/lua/yield.lua",
			Breaks:  "A contended lock is never left free, so that a client that polls never gets it.",
			Old:     "if not FOREIGN or s.lock",
			New:     "if FOREIGN or s.lock",
			FoundBy: []Finder{{"redislock", "TestLockIsLeftFreeForOthers"}, {"systest", "TestFleetsShareALock"}},
		},
		{
			Name: "redis-gap-used-by-ours", Invariant: "I7", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "The next of the queue is granted a lock that is left free for others.",
			Old:     "if s.places == 0 or vacant(s) > 0 then",
			New:     "if s.places == 0 then",
			FoundBy: []Finder{{"redislock", "TestNobodyOfOursUsesTheGap"}},
		},
		{
			Name: "redis-gap-until-clock-returns", Invariant: "I8", File: "rediscore/internal/lua/yield.lua",
			Breaks:  "After the server's clock went back, the lock is left free until the old time comes again.",
			Old:     "s.gap and recent(s.gap - GAP, GAP) and",
			New:     "s.gap and s.gap > millis() and",
			FoundBy: []Finder{{"redislock", "TestGapAfterTheClockWentBack"}},
		},
		{
			Name: "redis-head-not-told-of-gap", Invariant: "I7", File: "rediscore/internal/lua/yield.lua",
			Breaks:  "The head of the queue is not told when to look again, and finds out by its next refresh.",
			Old:     "if head then\n    tell(",
			New:     "if head and false then\n    tell(",
			FoundBy: []Finder{{"redislock", "TestHeadIsToldOfTheEndOfTheGap"}},
		},
		{
			Name: "head-waits-for-foreign-news", Invariant: "I7", File: "internal/places/places.go",
			Breaks:  "The first of the queue waits for news from a client that sends none.",
			Old:     "if p.foreign > 0 {",
			New:     "if p.foreign > time.Hour {",
			FoundBy: []Finder{{".", "TestHeadLooksForForeignClients"}},
		},
		{
			Name: "foreign-looks-unbounded", Invariant: "I7", File: "internal/places/places.go",
			Breaks:  "However many names foreign clients have, the first of each queue looks as often as if it were alone.",
			Old:     "foreignShare   = 5 * time.Millisecond",
			New:     "foreignShare   = 5 * time.Nanosecond",
			FoundBy: []Finder{{".", "TestHeadLooksForForeignClients"}},
		},
	}
}
