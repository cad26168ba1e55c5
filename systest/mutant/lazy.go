package mutant

// lazyMutants are faults of what is made only when somebody needs it: contexts.
func lazyMutants() []Mutant {
	limit := []Finder{{"internal/ask", "TestLimitIsAsTheStandardOne"}}
	return []Mutant{
		{
			Name: "unwatched-request-has-no-limit", File: "internal/ask/limit.go",
			Breaks:  "A request whose context is only looked at now and then never reaches its limit.",
			Old:     "l.caller.Err() == nil && time.Now().Before(l.end) {",
			New:     "l.caller.Err() == nil {",
			FoundBy: limit,
		},
		{
			Name: "unwatched-request-outlives-its-caller", File: "internal/ask/limit.go",
			Breaks:  "A request whose context is only looked at does not end with its caller's.",
			Old:     "!l.canceled && l.caller.Err() == nil && time",
			New:     "!l.canceled && time",
			FoundBy: limit,
		},
		{
			Name: "stopped-request-times-out", Invariant: "I10", File: "internal/ask/limit.go",
			Breaks:  "A request's context that was stopped says later that there was no answer in time.",
			Old:     "case l.canceled: // whatever",
			New:     "case l.canceled && l.caller == nil: // whatever",
			FoundBy: limit,
		},
		{
			Name: "stop-hides-the-callers-end", Invariant: "I10", File: "internal/ask/limit.go",
			Breaks:  "A request's context that is stopped after its caller's has ended forgets why that did.",
			Old:     "if l.made == nil && l.caller.Err() == nil {",
			New:     "if l.made == nil {",
			FoundBy: limit,
		},
		{
			Name: "stop-forgets-who-waits", File: "internal/ask/limit.go",
			Breaks:  "Stopping a request's context does not end the one that somebody waits for.",
			Old:     "if l.made == nil && l.caller.Err() == nil {",
			New:     "if l.caller.Err() == nil {",
			FoundBy: limit,
		},
		{
			Name: "limit-hides-an-earlier-deadline", File: "internal/ask/limit.go",
			Breaks:  "A request's context names its own limit as the deadline though its caller's comes first.",
			Old:     "ok && end.Before(l.end) {",
			New:     "ok && end.Before(l.end) && false {",
			FoundBy: limit,
		},
		{
			Name: "limit-has-its-callers-cause", Invariant: "I10", File: "internal/ask/limit.go",
			Breaks:  "The limit of a request ends its context without the cause that tells it from the caller's deadline.",
			Old:     "return l.make().Value(key)",
			New:     "return l.caller.Value(key)",
			FoundBy: limit,
		},
		{
			Name: "limit-is-made-at-once", File: "internal/ask/limit.go",
			Breaks:  "Each request has a timer, even if it is answered before anybody waits.",
			Old:     "return l, l.cancel",
			New:     "l.make()\n\treturn l, l.cancel",
			FoundBy: []Finder{{"internal/ask", "TestLimitCostsNothingUnused"}},
		},
	}
}
