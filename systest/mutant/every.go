package mutant

// everyMutants are faults of schedules.
func everyMutants() []Mutant {
	const runs, schedule = "every_run.go", "every_schedule.go"
	once := Finder{".", "TestEveryRunsOnceOrTells"}
	return []Mutant{
		{
			Name: "run-is-settled-by-the-clock", Invariant: "", File: runs,
			Breaks:  "A run that is done settles what the clock of its replica says, and not its scheduled time.",
			Old:     "r.Settled, r.Failing = run.Scheduled, nil",
			New:     "r.Settled, r.Failing = s.opts.clock().Round(0).UTC().Truncate(time.Second), nil",
			FoundBy: []Finder{{".", "TestEveryRunsNeverOverlap"}},
		},
		{
			Name: "due-by-the-clock", Invariant: "", File: schedule,
			Breaks:  "What is due is what the clock of a replica says, and not what follows from the record.",
			Old:     "t := s.after(r.Settled)\n\tif !t.Equal(r.Next) {",
			New:     "t := s.after(now.Add(-time.Second))\n\tif t.After(now.Add(time.Hour)) {",
			FoundBy: []Finder{{".", "TestEverySecondLeader"}},
		},
		{
			Name: "leader-trusts-its-memory", Invariant: "", File: runs,
			Breaks:  "A leader runs what is due by what it has read before it had the lock.",
			Old:     "if known != nil && (r == nil || r.Settled.Before(known.Settled)) {",
			New:     "if known != nil {",
			FoundBy: []Finder{{".", "TestEverySecondLeader"}},
		},
		{
			Name: "leader-forgets-with-the-store", Invariant: "", File: runs,
			Breaks:  "A leader begins anew when the store has lost the record.",
			Old:     "if known != nil && (r == nil || r.Settled.Before(known.Settled)) {",
			New:     "if known != nil && r != nil && r.Settled.Before(known.Settled) {",
			FoundBy: []Finder{{".", "TestEveryStoreForgets"}},
		},
		{
			Name: "missed-runs-are-swallowed", Invariant: "", File: "every_record.go",
			Breaks:  "What was missed is settled and not counted.",
			Old:     "r.Missed += uint64(m.Count)",
			New:     "r.Missed += 0",
			FoundBy: []Finder{once, {".", "TestEveryMissed"}},
		},
		{
			Name: "missed-runs-are-not-told", Invariant: "", File: runs,
			Breaks:  "What was missed is written down and told to nobody.",
			Old:     "s.opts.Missed(m)",
			New:     "_ = m",
			FoundBy: []Finder{{".", "TestEveryMissed"}, {".", "TestEveryRunsNeverOverlap"}},
		},
		{
			Name: "return-runs-all-that-was-missed", Invariant: "", File: schedule,
			Breaks:  "Whoever comes back runs what is long over.",
			Old:     "now.Before(t.Add(s.opts.Late))",
			New:     "(s.opts.Late > 0 || now.Before(t))",
			FoundBy: []Finder{{".", "TestEveryMissed"}, {".", "TestEveryTriesAgain"}},
		},
		{
			Name: "every-dies-with-a-failed-run", Invariant: "", File: runs,
			Breaks:  "Every ends when a run has failed.",
			Old:     "\t\terr = opError(\"every\", s.name, err)\n\t}()",
			New:     "\t\ts.verdict = err\n\t\terr = opError(\"every\", s.name, err)\n\t}()",
			FoundBy: []Finder{{".", "TestEveryTriesAgain"}},
		},
		{
			Name: "failed-run-is-done", Invariant: "", File: runs,
			Breaks:  "A run that has failed settles its scheduled time.",
			Old:     "\tr.Failing = &FailedRun{",
			New:     "\tr.Settled = run.Scheduled\n\tr.Failing = &FailedRun{",
			FoundBy: []Finder{{".", "TestEveryTriesAgain"}},
		},
		{
			Name: "failed-run-is-tried-without-a-pause", Invariant: "", File: schedule,
			Breaks:  "The replicas try a run that fails one after the other, as fast as they can.",
			Old:     "now.Add(pauseAfter(r.Failing.Attempts))",
			New:     "now.Add(pauseAfter(1) / 100)",
			FoundBy: []Finder{{".", "TestEveryTriesAgain"}, {".", "TestEveryPanics"}},
		},
		{
			Name: "panic-of-a-run-is-not-written-down", Invariant: "", File: runs,
			Breaks:  "A run that panics counts as done.",
			Old:     `err = errors.New("it has panicked, or ended its goroutine")`,
			New:     "err = nil",
			FoundBy: []Finder{{".", "TestEveryPanics"}},
		},
		{
			Name: "stop-is-a-failure-of-the-run", Invariant: "", File: runs,
			Breaks:  "A run that was broken off because its program stops counts as failed, and the next replica rests.",
			Old:     "if s.ctx.Err() != nil {\n\t\treturn missed, err",
			New:     "if s.ctx.Err() == nil && err == nil {\n\t\treturn missed, err",
			FoundBy: []Finder{{".", "TestEveryStopInARun"}},
		},
		{
			Name: "clock-years-ahead-settles-years", Invariant: "", File: runs,
			Breaks:  "A replica whose clock is hours ahead runs what is not due.",
			Old:     "ahead > mostAhead {",
			New:     "ahead > 1000*mostAhead {",
			FoundBy: []Finder{{".", "TestEveryClockIsFarAhead"}},
		},
		{
			Name: "leader-does-not-look-at-its-clock", Invariant: "", File: runs,
			Breaks:  "A leader sleeps on until its timer ends, though its clock was set.",
			Old:     "clockGlance = 10 * time.Second",
			New:     "clockGlance = 10000 * time.Hour",
			FoundBy: []Finder{{".", "TestEveryClockIsSet"}},
		},
		{
			Name: "change-of-a-schedule-is-a-long-absence", Invariant: "", File: schedule,
			Breaks:  "A new schedule is measured by what it would have run before it was there.",
			Old:     "if !t.Equal(r.Next) {",
			New:     "if t.Before(r.Settled) {",
			FoundBy: []Finder{{".", "TestEveryScheduleChanges"}},
		},
		{
			Name: "record-of-a-schedule-outgrows-its-head", Invariant: "I11", File: "every_record.go",
			Breaks:  "The record of a schedule is longer than what a listing reads.",
			Old:     "len(line) < driver.RecordHead ||",
			New:     "len(line) < 10*driver.RecordHead ||",
			FoundBy: []Finder{{".", "TestScheduleRecordIsShort"}},
		},
		{
			Name: "once-replays-a-schedule", Invariant: "I12", File: "once_record.go",
			Breaks:  "Do-once work under the name of a schedule is not told that it is one.",
			Old:     "case parseSchedule(record) != nil:",
			New:     "case parseSchedule(record) != nil && fingerprint != \"\":",
			FoundBy: []Finder{{".", "TestOnceOfASchedule"}},
		},
	}
}
