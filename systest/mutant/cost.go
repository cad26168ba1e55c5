package mutant

// costMutants change nothing but what an operation costs.
func costMutants() []Mutant {
	return []Mutant{
		{
			Name: "redis-scripts-waste-time", Invariant: "", File: "rediscore/internal/lua/lua.go",
			Breaks:  "Each script does some work for nothing in front of all else.",
			Old:     "return l.places().Replace(read(pieces))",
			New:     "return \"for i = 1, 60 do local waste = 'x' .. i end\\n\" + l.places().Replace(read(pieces))",
			FoundBy: []Finder{{"systest", "TestServerCost"}},
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
