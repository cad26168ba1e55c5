package mutant

// movingMutants are faults with names of a Redis Cluster, and their slots.
func movingMutants() []Mutant {
	moving := Finder{"redislock", "TestClusterErrors/ASK_and_TRYAGAIN"}
	return []Mutant{
		{
			Name: "redis-slot-moves-lease-dies", Invariant: "I9", File: "rediscore/operations.go",
			Breaks:  "While a Cluster moves a slot its leases cannot be renewed.",
			Old:     "errs[i] = e.extendAlone(ctx, reqs[i], err)",
			New:     "errs[i] = err",
			FoundBy: []Finder{moving},
		},
		{
			Name: "redis-slot-moves-release-waits", Invariant: "", File: "rediscore/operations.go",
			Breaks:  "While a Cluster moves a slot its leases cannot be given back.",
			Old:     "return e.releaseAlone(ctx, req, err)",
			New:     "return err",
			FoundBy: []Finder{moving},
		},
		{
			Name: "redis-tag-by-search", Invariant: "", File: "rediscore/internal/keys/keys.go",
			Breaks:  "For names with braces that are not a hash tag each request searches through as many numbers as there are slots.",
			Old:     "	return tagOf(Slot(key))",
			New:     "	for n := 0; ; n++ {\n\t\tif tag := fmt.Sprint(n); Slot(tag) == Slot(key) {\n\t\t\treturn tag\n\t\t}\n\t}",
			FoundBy: []Finder{{"rediscore/internal/keys", "TestTagOf"}},
		},
	}
}
