package mutant

// startMutants are faults that make the start of a program dear.
func startMutants() []Mutant {
	return []Mutant{
		{
			Name: "scripts-are-all-made-at-once", Invariant: "", File: "rediscore/internal/lua/lua.go",
			Breaks:  "An engine puts all its scripts together when it is made: that costs a short program more than its requests.",
			Old:     "s := later(func() string { return l.places().Replace(read(pieces)) })",
			New:     "s := New(l.places().Replace(read(pieces)))",
			FoundBy: []Finder{{"rediscore/internal/lua", "TestScriptsAreMadeWhenNeeded"}},
		},
	}
}
