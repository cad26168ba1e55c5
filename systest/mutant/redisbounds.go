package mutant

// redisBoundMutants are faults of the engine for Redis with very many leases or
// places of one name, which it treats in several calls.
func redisBoundMutants() []Mutant {
	bounded, halfDone := Finder{"systest", "TestCallsAreBounded"}, Finder{"systest", "TestHalfDoneCallIsFinished"}
	return []Mutant{
		{
			Name: "redis-call-without-bound", Invariant: "", File: "rediscore/internal/lua/state.lua",
			Breaks:  "One call ends or grants thousands of leases, and holds the server up meanwhile.",
			Old:     "local ROOM = 256",
			New:     "local ROOM = 5000",
			FoundBy: []Finder{bounded},
		},
		{
			Name: "redis-held-by-dead-places", Invariant: "I7", File: "rediscore/internal/lua/acquire.lua",
			Breaks:  "A request is told to wait although only dead places are in its way, too many for one call.",
			Old:     "if not settle(s) then\n  return { MORE }\nend\n\nlocal reply",
			New:     "settle(s)\n\nlocal reply",
			FoundBy: []Finder{bounded},
		},
		{
			Name: "redis-release-leaves-the-rest", Invariant: "I7", File: "rediscore/operations.go",
			Breaks:  "A release grants the lock to the first of very many who could share it, and leaves the others waiting.",
			Old:     "case !all.more:",
			New:     "default:",
			FoundBy: []Finder{bounded, halfDone},
		},
		{
			Name: "redis-free-between-two-calls", Invariant: "I7", File: "rediscore/internal/lua/release.lua",
			Breaks:  "A release ends the lease before it has cleared the dead places away, so that the lock is free between two calls.",
			Old:     "if s.more then\n  -- The lease",
			New:     "if s.more then\n  redis.call('DEL', s.key)\n  -- The lease",
			FoundBy: []Finder{halfDone},
		},
		{
			Name: "redis-complete-leaves-the-rest", Invariant: "", File: "rediscore/internal/lua/complete.lua",
			Breaks:  "Of very many places for work that is done, only the first are told.",
			Old:     "if s.more then\n  return { 1, from }",
			New:     "if false then\n  return { 1, from }",
			FoundBy: []Finder{bounded},
		},
		{
			Name: "redis-repeat-of-complete-stops", Invariant: "I6", File: "rediscore/internal/lua/complete.lua",
			Breaks:  "The repeat of a Complete that was half done does not end it.",
			Old:     "end -- INVARIANT I6: a repeat",
			New:     "else\n  return 1\nend -- INVARIANT I6: a repeat",
			FoundBy: []Finder{halfDone},
		},
		{
			Name: "redis-queue-shown-in-part", Invariant: "", File: "rediscore/inspect.go",
			Breaks:  "Inspect shows no place of a queue that begins with very many dead ones.",
			Old:     "for found.Err == nil && found.next != \"\" && len(found.places) < places {",
			New:     "for false {",
			FoundBy: []Finder{bounded},
		},
		{
			Name: "redis-batch-forgets-the-rest", Invariant: "I10", File: "rediscore/store.go",
			Breaks:  "A renewal that a call had no room for passes for done.",
			Old:     "\t\t\tagain = append(again, i)\n",
			New:     "",
			FoundBy: []Finder{{"rediscore", "TestBatchGoesOn"}},
		},
		{
			Name: "redis-batch-of-any-length", Invariant: "I10", File: "rediscore/store.go",
			Breaks:  "A reply about more leases than were asked for is read as if it were about these.",
			Old:     "err == nil && len(items) != len(group)",
			New:     "err == nil && len(items) < len(group)",
			FoundBy: []Finder{{"rediscore", "TestMalformedBatches"}},
		},
	}
}
