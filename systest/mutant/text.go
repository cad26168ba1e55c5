package mutant

// textMutants are faults of what people read.
func textMutants() []Mutant {
	return []Mutant{
		{
			Name: "names-may-turn-text-around", Invariant: "I10", File: "driver/name.go",
			Breaks:  "A name, or a holder's reason, may have characters that make people read another one.",
			Old:     " || unicode.Is(unicode.Bidi_Control, r)",
			New:     "",
			FoundBy: []Finder{{".", "TestBadInputChangesNothing"}},
		},
		{
			Name: "unseen-text-is-printed", Invariant: "", File: "cmd/holdfast/internal/cli/print.go",
			Breaks:  "The command prints what no terminal shows, such as a space of no width in a name.",
			Old:     "if unicode.IsPrint(r) {",
			New:     "if !unicode.IsControl(r) {",
			FoundBy: []Finder{{"cmd/holdfast/internal/cli", "TestPlain"}},
		},
	}
}
