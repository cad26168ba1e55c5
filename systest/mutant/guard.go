package mutant

// guardMutants are faults of the resource's side.
func guardMutants() []Mutant {
	return []Mutant{
		{
			Name: "guard-accepts-equal-token", Invariant: "I4", File: "fence/claim.go",
			Breaks:  "A guard accepts the token of its mark from another lease.",
			Old:     "return c.token > mark.token || c == mark",
			New:     "return c.token >= mark.token",
			FoundBy: []Finder{{"fence", "TestRule"}},
		},
		{
			Name: "guard-accepts-stale-token", Invariant: "I4", File: "fence/claim.go",
			Breaks:  "A guard accepts every token.",
			Old:     "return c.token > mark.token || c == mark",
			New:     "return c.token > 0",
			FoundBy: []Finder{{"fence", "TestRule"}, {"fence/httpfence", "TestHandlerStory"}},
		},
		{
			Name: "sql-guard-accepts-equal-token", Invariant: "I4", File: "fence/sqlfence/sql.go",
			Breaks:  "The guard for SQL accepts the token of its mark from another lease.",
			Old:     "(mark.token = excluded.token AND mark.lease_id = excluded.lease_id)",
			New:     "mark.token = excluded.token",
			FoundBy: []Finder{{"systest/fencetest", "TestSQLite/Rule"}},
		},
		{
			Name: "redis-guard-accepts-equal-token", Invariant: "I4", File: "rediscore/redisfence/guard.lua",
			Breaks:  "The guard for Redis accepts the token of its mark from another lease.",
			Old:     "if token < last or token == last and holder ~= ARGV[2] then",
			New:     "if token < last then",
			FoundBy: []Finder{{"redislock", "TestGuardRule"}},
		},
		{
			Name: "redis-guard-keeps-no-mark", Invariant: "", File: "rediscore/redisfence/guard.lua",
			Breaks:  "The guard for Redis keeps no mark, so that who comes late is accepted.",
			Old:     "redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])",
			New:     "redis.call('EXISTS', KEYS[2])",
			FoundBy: []Finder{{"redislock", "TestGuardRule"}},
		},
	}
}
