package mutant

// bothEnginesMutants are faults that show where processes with redislock and with
// goredislock want the same names.
func bothEnginesMutants() []Mutant {
	both := []Finder{{"systest", "TestHistoryOfBothEngines"}}
	return []Mutant{
		{
			Name: "goredis-has-locks-of-its-own", Invariant: "I1", File: "goredislock/engine.go",
			Breaks:  "The keys of goredislock are not those of redislock: both have the same name at the same time.",
			Old:     "return &Engine{rediscore.New(c, opts)}, nil",
			New:     "return &Engine{rediscore.New(c, &Options{Prefix: \"go:\"})}, nil",
			FoundBy: both,
		},
		{
			Name: "redis-serves-the-latest-first", Invariant: "I7", File: "rediscore/internal/lua/serve.lua",
			Breaks:  "Whoever has come last is served first, whichever client it has.",
			Old:     "math.min(look, math.ceil(room / GRANT)) - 1)",
			New:     "math.min(look, math.ceil(room / GRANT)) - 1, 'REV')",
			FoundBy: both,
		},
	}
}
