package mutant

// costMutants change nothing but what an operation costs.
func costMutants() []Mutant {
	return []Mutant{
		{
			Name: "redis-scripts-waste-time", Invariant: "", File: "rediscore/internal/lua/lua.go",
			Breaks:  "Each script does some work for nothing in front of all else.",
			Old:     "return l.places().Replace(k.read(pieces))",
			New:     "return \"for i = 1, 60 do local waste = 'x' .. i end\\n\" + l.places().Replace(k.read(pieces))",
			FoundBy: []Finder{{"systest", "TestServerCost"}},
		},
		{
			Name: "redis-hand-over-looks-twice", Invariant: "", File: "rediscore/internal/lua/handover.lua",
			Breaks:  "A hand-over looks twice at the place that it is for.",
			Old:     "local ends = ttl and redis.call('ZSCORE', KEYS[WAITERS], id)",
			New:     "local ends = ttl and redis.call('ZSCORE', KEYS[WAITERS], id) and redis.call('ZSCORE', KEYS[WAITERS], id)",
			FoundBy: []Finder{{"systest", "TestServerCost"}},
		},
		{
			Name: "redis-plain-wastes-time", Invariant: "", File: "rediscore/internal/lua/plain_acquire.lua",
			Breaks:  "A plain acquire makes 40 texts for nothing, and sends no command more.",
			Old:     "local replies = {}",
			New:     "local replies = {}\nfor i = 1, 40 do replies.waste = 'x' .. i end\nreplies.waste = nil",
			FoundBy: []Finder{{"systest", "TestServerCost"}},
		},
		{
			Name: "redis-request-carries-more", Invariant: "", File: "rediscore/internal/lua/scripts.go",
			Breaks:  "A plain release names a key that it has no use for, which the server has to read.",
			Old:     "\"| lock detail\"",
			New:     "\"| lock detail fence\"",
			FoundBy: []Finder{{"systest", "TestServerCost"}},
		},
		{
			Name: "places-as-if-few", Invariant: "", File: "internal/places/places.go",
			Breaks:  "The places of 100,000 waiters are refreshed as often as those of one, which is more than a store can do.",
			Old:     "k.waiters.Add(1))*eachTTL",
			New:     "k.waiters.Add(1))",
			FoundBy: []Finder{{".", "TestManyPlacesAreRefreshedSlowly"}},
		},
		{
			Name: "waiters-only-grow", Invariant: "I7", File: "internal/places/places.go",
			Breaks:  "Waiters that are gone still count, so that after some days a dead waiter delays the others for as long as a TTL.",
			Old:     "k.waiters.Add(-1)",
			New:     "k.waiters.Add(0)",
			FoundBy: []Finder{{".", "TestManyPlacesAreRefreshedSlowly"}},
		},
		{
			Name: "message-goes-through-all", Invariant: "", File: "lease_keepalive.go",
			Breaks:  "Each message about a loss makes a client go through all leases that it has, even if all of them are lost.",
			Old:     "if k.table.Len() == len(k.rivals) {",
			New:     "if k.table.Len() == 0 {",
			FoundBy: []Finder{{".", "TestLossOfOneAmongMany"}},
		},
	}
}
