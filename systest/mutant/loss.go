package mutant

// lossMutants are faults of package holdfast: of how soon a holder knows that
// its lease is over.
func lossMutants() []Mutant {
	return []Mutant{
		{
			Name: "earlier-lease-goes-on", Invariant: "I3", File: "rivals.go",
			Breaks:  "A client trusts an exclusive lease although it was granted a later one of the same name.",
			Old:     "behind = other",
			New:     "_ = other",
			FoundBy: []Finder{{".", "TestLaterLeaseEndsEarlier"}, {".", "TestHandedOverLeaseEndsEarlier"}},
		},
		{
			Name: "grant-behind-greater-token-used", Invariant: "I3", File: "rivals.go",
			Breaks:  "A grant whose answer comes after that of a later one becomes a lease.",
			Old:     "if other.token > l.token {",
			New:     "if other.token > l.token && false {",
			FoundBy: []Finder{{".", "TestGrantBehindGreaterToken"}, {".", "TestAcquireAllBehindGreaterToken"}},
		},
	}
}
