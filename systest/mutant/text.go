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
			Name: "unseen-text-is-printed", Invariant: "", File: "cmd/holdfast/internal/render/text.go",
			Breaks:  "The command prints what no terminal shows, such as a space of no width in a name.",
			Old:     "if unicode.IsPrint(r) {",
			New:     "if !unicode.IsControl(r) {",
			FoundBy: []Finder{{"cmd/holdfast/internal/render", "TestPlain"}},
		},
		{
			Name: "unwritten-answer-is-an-answer", Invariant: "", File: "cmd/holdfast/internal/cli/answer.go",
			Breaks:  "The command ends as if its answer had been written, when it could not be.",
			Old:     "return exit.With(exit.Output, err)",
			New:     "_ = err\n\treturn nil",
			FoundBy: []Finder{{"cmd/holdfast", "TestScripts/show"}},
		},
		{
			Name: "codes-of-bare-errors-only", Invariant: "I10", File: "wire/code.go",
			Breaks:  "An error that is wrapped has no code: over the wire, and in the exit status, it is of no class.",
			Old:     "errors.Is(err, c.Err)",
			New:     "errors.Is(c.Err, err)",
			FoundBy: []Finder{{"wire/codes", "TestBothWays"}, {"cmd/holdfast/internal/exit", "TestStatusOf"}},
		},
		{
			Name: "break-is-told-as-a-loss", Invariant: "I10", File: "wire/code.go",
			Breaks:  "Whoever is told over the wire that a lease is over does not learn that somebody took it away.",
			Old:     `{"broken", 410, driver.ErrBroken}, // which is ErrLost as well` + "\n\t\t" + `{"lost", 410, driver.ErrLost},`,
			New:     `{"lost", 410, driver.ErrLost}, {"broken", 410, driver.ErrBroken},`,
			FoundBy: []Finder{{"wire/codes", "TestWhatSaysMostCounts"}},
		},
	}
}
