package mutant

// unheardMutants are faults with a lock that was handed to a waiter that hears
// of nothing.
func unheardMutants() []Mutant {
	return []Mutant{
		{
			Name: "redis-refresh-lengthens-unheard", Invariant: "I7", File: "rediscore/internal/lua/refresh.lua",
			Breaks:  "A refresh lengthens the lease of a waiter that loses all answers, so that the others wait for as long as it asks.",
			Old:     "return { 1, tonumber(h.token) }",
			New:     "lengthen(s, id, h, ttl)\n    return { 1, tonumber(h.token) }",
			FoundBy: []Finder{redis("RefreshLeavesHandedOverLease")},
		},
		{
			Name: "memory-refresh-lengthens-unheard", Invariant: "I7", File: "memlock/queue.go",
			Breaks:  "The same in the engine in memory.",
			Old:     "if h := l.held(req.LeaseID); h != nil {\n\t\treturn driver.AcquireReply{Outcome: driver.Granted",
			New:     "if h := l.held(req.LeaseID); h != nil {\n\t\tlengthen(&h.expiry, now.Add(req.WaiterTTL))\n\t\treturn driver.AcquireReply{Outcome: driver.Granted",
			FoundBy: []Finder{{".", "TestUnheardHandOverEndsWithPlace"}, {"memlock", "TestConformance/RefreshLeavesHandedOverLease"}},
		},
		{
			Name: "refreshed-lease-trusted-for-longer", Invariant: "I3", File: "acquire_wait.go",
			Breaks:  "A waiter that finds its lease by a refresh trusts it for the waiter TTL from then on.",
			Old:     "case r.Reply.Err == nil && r.Reply.Outcome == driver.Granted:\n",
			New:     "case r.Reply.Err == nil && r.Reply.Outcome == driver.Granted:\n\t\t\t\tw.queued = r.Sent\n",
			FoundBy: []Finder{{".", "TestLostNoticeIsFoundByRefresh"}},
		},
		{
			Name: "found-lease-given-up", Invariant: "I7", File: "acquire_attempt.go",
			Breaks:  "A waiter whose answers were lost for a while gives up the lease that it then finds, and goes to the end of the queue.",
			Old:     "w.uncertain = true // news may be of this grant, and the next attempt get another",
			New:     "w.startOver()",
			FoundBy: []Finder{{".", "TestLeaseFoundLateIsKept"}},
		},
	}
}
