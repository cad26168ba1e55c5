package mutant

// forwarded is a requirement on the engine in memory behind a driver.Forward
// without a flag.
func forwarded(flag, requirement string) Finder {
	return Finder{"memlock", "TestConformanceBehindForward/without_" + flag + "/" + requirement}
}

// featureMutants are faults with what engines can do besides: flags decide,
// interfaces only carry.
func featureMutants() []Mutant {
	refused, each := Finder{".", "TestNewRefusesWrapperWithoutMethods"}, Finder{"driver", "TestEachFlagNeedsItsMethods"}
	return []Mutant{
		{
			Name: "flag-without-methods", File: "driver/features.go",
			Breaks:  "An engine that says more than it has methods for is used: its waiters poll, and nobody knows why.",
			Old:     "if *as, ok = engine.(I); !ok {",
			New:     "if *as, ok = engine.(I); !ok && !set {",
			FoundBy: []Finder{refused, each},
		},
		{
			Name: "methods-without-flag", Invariant: "I12", File: "driver/features.go",
			Breaks:  "What an engine has methods for is used, even if it says that it cannot.",
			Old:     "	if !set {\n		return nil",
			New:     "	if !set {\n		*as, _ = engine.(I)\n		return nil",
			FoundBy: []Finder{each, {".", "TestOnceNeedsRecords"}, {".", "TestBreakNeedsEngine"}, {".", "TestDowngradeRefused"}},
		},
		{
			Name: "forward-hides-wrapper", File: "driver/features.go",
			Breaks:  "A wrapper that has lost its methods is not noticed behind one that embeds driver.Forward.",
			Old:     "if _, err := FeaturesOf(w.wrapped()); err != nil {",
			New:     "if _, err := FeaturesOf(w.wrapped()); err != nil && false {",
			FoundBy: []Finder{refused},
		},
		{
			Name: "forward-asks-without-flag", Invariant: "I12", File: "driver/forward.go",
			Breaks:  "A wrapper hands on what its flags say that it cannot do.",
			Old:     "resolve(f.Engine, f.Capabilities())",
			New:     "resolve(f.Engine, f.Engine.Capabilities())",
			FoundBy: []Finder{forwarded("List", "RefusesMethodsIfUnsupported"), {"redislock", "TestConformanceWithoutFlags/without_Break/RefusesBreakIfUnsupported"}},
		},
		{
			Name: "forward-acquires-what-is-off", Invariant: "I12", File: "driver/forward.go",
			Breaks:  "A wrapper hands on a request for a mode that it has switched off.",
			Old:     "	if err := CheckSupport(f.Capabilities(), req); err != nil {",
			New:     "	if err := CheckSupport(f.Capabilities(), req); err != nil && false {",
			FoundBy: []Finder{forwarded("Semaphore", "RefusesSemaphoreIfUnsupported"), forwarded("Queue", "RefusesQueueIfUnsupported")},
		},
		{
			Name: "forward-acquires-all-of-what-is-off", Invariant: "I12", File: "driver/forward.go",
			Breaks:  "The same for several names at once.",
			Old:     "err := CheckSupport(left.Capabilities, reqs[i]); err != nil",
			New:     "err := CheckSupport(left.Capabilities, reqs[i]); err != nil && false",
			FoundBy: []Finder{forwarded("Semaphore", "RefusesSemaphoreIfUnsupported")},
		},
		{
			Name: "forward-shows-what-is-off", File: "driver/features.go",
			Breaks:  "A wrapper that has switched the queue off says that it has one.",
			Old:     "Queue:       c.Queue && !off.Queue,",
			New:     "Queue:       c.Queue,",
			FoundBy: []Finder{{"driver", "TestForwardSwitchesOff"}},
		},
		{
			Name: "once-is-asked-without-records", Invariant: "I12", File: "driver/support.go",
			Breaks:  "A request about do-once work goes to an engine that keeps no records, and is granted.",
			Old:     "case req.Once && !c.Records:",
			New:     "case req.Once && !c.Records && false:",
			FoundBy: []Finder{forwarded("Records", "RefusesOnceIfUnsupported")},
		},
		{
			Name: "once-starts-without-records", Invariant: "I12", File: "once_status.go",
			Breaks:  "Once starts the work on an engine that has the methods to keep its result, and says that it cannot.",
			Old:     "	if c.features.Recorder == nil {",
			New:     "	if r, ok := c.engine.(driver.Recorder); ok {\n		return r, nil\n	}\n	if c.features.Recorder == nil {",
			FoundBy: []Finder{{".", "TestOnceNeedsRecords"}},
		},
		{
			Name: "quorum-tells-with-some", Invariant: "I12", File: "quorumlock/engine.go",
			Breaks:  "A quorum says that it tells of losses even if a member cannot.",
			Old:     "e.capable.Losses = e.capable.Losses && f.Losses",
			New:     "e.capable.Losses = e.capable.Losses || f.Losses",
			FoundBy: []Finder{{"quorumlock", "TestMemberThatCannotBreak"}},
		},
		{
			Name: "quorum-takes-hollow-member", File: "quorumlock/engine.go",
			Breaks:  "A member that says more than it has methods for is taken, and missed when it is asked.",
			Old:     "		if err != nil {\n			return fmt.Errorf(\"member",
			New:     "		if err != nil && false {\n			return fmt.Errorf(\"member",
			FoundBy: []Finder{{"quorumlock", "TestNewRefuses"}},
		},
		{
			Name: "mode-of-unknown-text", File: "driver/mode.go",
			Breaks:  "A mode that is not known is read as whatever was there before.",
			Old:     "return fmt.Errorf(\"%w mode %q: want exclusive, shared or semaphore\", ErrInvalid, text)",
			New:     "_ = fmt.Errorf(\"%w mode %q\", ErrInvalid, text)\n	return nil",
			FoundBy: []Finder{{"driver", "TestModeIsTextInJSON"}},
		},
		{
			Name: "redis-news-stays-with-first", Invariant: "I7", File: "rediscore/internal/lua/queue.lua",
			Breaks:  "News of a place goes to the process that asked for it first, though another has asked since.",
			Old:     "p.ttl, p.inbox = ttl, inbox",
			New:     "p.ttl = ttl",
			FoundBy: []Finder{redis("WatchTellsWhoAskedLast")},
		},
	}
}
