package mutant

// layoutMutants are faults of the engine for Redis with names that another
// version keeps in another layout.
func layoutMutants() []Mutant {
	unknown := Finder{"redislock", "TestUnknownLayout"}
	return []Mutant{
		{
			Name: "redis-unknown-layout-is-free", Invariant: "I1", File: "rediscore/internal/lua/value.lua",
			Breaks:  "A lock that another version of holdfast has in another layout is taken for free.",
			Old:     "  lock.unknown = unknown(value)\n",
			New:     "  if unknown(value) then\n    return nil\n  end\n",
			FoundBy: []Finder{unknown},
		},
		{
			Name: "redis-unknown-layout-is-foreign", Invariant: "I10", File: "rediscore/internal/lua/value.lua",
			Breaks:  "A lock of another version of holdfast shows as that of a client which is not holdfast.",
			Old:     "  lock.unknown = unknown(value)\n",
			New:     "",
			FoundBy: []Finder{unknown},
		},
		{
			Name: "redis-layout-without-number-unknown", Invariant: "I10", File: "rediscore/internal/lua/value.lua",
			Breaks:  "A lock of the first layout, which had no number, shows as that of a client which is not holdfast.",
			Old:     "return id and #id == 32 and number ~= 'THIS_LAYOUT'",
			New:     "return id and #id == 32 and number ~= '1' and number ~= 'THIS_LAYOUT'",
			FoundBy: []Finder{unknown},
		},
		{
			Name: "redis-unknown-detail-not-seen", Invariant: "I1", File: "rediscore/internal/lua/value.lua",
			Breaks:  "The queue of another version is served, or deleted, as if it were in our layout.",
			Old:     "if layout ~= 'THIS_LAYOUT' and",
			New:     "if layout and layout ~= 'THIS_LAYOUT' and layout ~= '3' and",
			FoundBy: []Finder{{"redislock", "TestUnknownDetail"}},
		},
		{
			Name: "redis-guard-overwrites-lock", Invariant: "", File: "rediscore/redisfence/guard.lua",
			Breaks:  "A guard overwrites the lock of the lease that it is shown, because it does not know the lock's layout.",
			Old:     "'^%d* ?' ..",
			New:     "'^' ..",
			FoundBy: []Finder{{"redislock", "TestGuardOfLease"}},
		},
	}
}
