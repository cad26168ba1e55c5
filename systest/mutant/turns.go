package mutant

// turnsMutants are faults of package holdfast: of who is next where the store
// keeps no queue.
func turnsMutants() []Mutant {
	return []Mutant{
		{
			Name: "releaser-goes-first", Invariant: "I7", File: "acquire_turns.go",
			Breaks:  "Without a queue, whoever has released the lock asks for it again at once, although others want it.",
			Old:     "case p.wanted && lasted >= turnsSlice:",
			New:     "case p.wanted && lasted >= turnsUnseen:",
			FoundBy: []Finder{{".", "TestTurnsWithoutQueue"}},
		},
		{
			Name: "unseen-are-never-seen", Invariant: "I7", File: "acquire_turns.go",
			Breaks:  "Without a queue, a client that is never refused never leaves the lock free, and nobody else gets it.",
			Old:     "case lasted >= turnsUnseen:",
			New:     "case lasted >= turnsUnseen && p.wanted:",
			FoundBy: []Finder{{".", "TestTurnsWithoutQueue"}},
		},
		{
			Name: "pauses-for-the-gone", Invariant: "I7", File: "acquire_turns.go",
			Breaks:  "Without a queue, a client goes on pausing for those who have gone.",
			Old:     "case idle >= pollLongest, p.vain >= turnsInVain:",
			New:     "case idle >= pollLongest:",
			FoundBy: []Finder{{".", "TestTurnsAfterRivalsHaveGone"}},
		},
		{
			Name: "pause-outlasts-the-wait", Invariant: "I7", File: "acquire_wait.go",
			Breaks:  "Without a queue, a short wait is over before the first request.",
			Old:     "d = min(d, time.Until(end)/2)",
			New:     "_ = end",
			FoundBy: []Finder{{".", "TestTurnsPauseWithinTheWait"}},
		},
	}
}
