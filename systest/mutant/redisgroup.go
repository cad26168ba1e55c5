package mutant

// groupMutants are faults of how requests to Redis share goroutines and calls.
func groupMutants() []Mutant {
	crew := Finder{"rediscore", "TestCrew"}
	return []Mutant{
		{
			Name: "redis-request-behind-another", Invariant: "I9", File: "rediscore/crew.go",
			Breaks:  "A request waits for a goroutine that waits for the answer to another.",
			Old:     "jobs: make(chan job)}",
			New:     "jobs: make(chan job, 1)}",
			FoundBy: []Finder{crew},
		},
		{
			Name: "redis-crew-of-any-size", Invariant: "", File: "rediscore/crew.go",
			Breaks:  "As many goroutines stay without a job as there ever were jobs at a time.",
			Old:     "if c.parked.Add(1) > mostParked {",
			New:     "if c.parked.Add(1) < 0 {",
			FoundBy: []Finder{crew},
		},
		{
			Name: "redis-crew-for-ever", Invariant: "", File: "rediscore/crew.go",
			Breaks:  "Goroutines without a job outlive the engine.",
			Old:     "case <-c.life.Done():",
			New:     "case <-context.Background().Done():",
			FoundBy: []Finder{crew},
		},
	}
}
