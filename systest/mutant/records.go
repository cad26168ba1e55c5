package mutant

// recordMutants are faults of telling of do-once records without reading them whole.
func recordMutants() []Mutant {
	return []Mutant{
		{
			Name: "once-list-tells-of-plain-locks", File: "once_list.go",
			Breaks:  "Every lock that is held is listed as do-once work in progress.",
			Old:     "return h.Holder.Once && !h.Released",
			New:     "return !h.Released",
			FoundBy: []Finder{{".", "TestOnceList"}},
		},
		{
			Name: "once-list-counts-the-header", File: "once_list.go",
			Breaks:  "The length of a result is that of its record.",
			Old:     "r.Length-(len(r.Head)-len(value))",
			New:     "r.Length-0*len(value)",
			FoundBy: []Finder{{".", "TestOnceList"}},
		},
		{
			Name: "once-list-misses-completion", File: "once_list.go",
			Breaks:  "Work that is completed while the keys are listed is listed as in progress as well.",
			Old:     "delete(working, r.Name)",
			New:     "delete(working, \"\")",
			FoundBy: []Finder{{".", "TestOnceListRacesCompletion"}},
		},
		{
			Name: "once-list-shows-a-value", File: "once_list.go",
			Breaks:  "once list shows the result of what was done.",
			Old:     "Key: r.Name, State: OnceDone",
			New:     "Key: r.Name, Holder: Holder{Host: string(r.Head)}, State: OnceInProgress",
			FoundBy: []Finder{{"cmd/holdfast", "TestScripts/once_list"}, {".", "TestOnceList"}},
		},
		{
			Name: "show-says-done-is-free", File: "cmd/holdfast/internal/render/lock.go",
			Breaks:  "show says of a done key that it is free.",
			Old:     "once.State == holdfast.OnceDone {",
			New:     "once.State == holdfast.OnceDone && false {",
			FoundBy: []Finder{{"cmd/holdfast", "TestScripts/once_list"}},
		},
		{
			Name: "redis-records-without-rights", Invariant: "I10", File: "rediscore/internal/lua/records.lua",
			Breaks:  "A user who may not ask for the length of a record is told that there is none.",
			Old:     "reply = length.err",
			New:     "reply = {}",
			FoundBy: []Finder{{"redislock", "TestRecordsNeedRights"}},
		},
		{
			Name: "redis-lists-records-that-are-none", File: "rediscore/internal/lua/records.lua",
			Breaks:  "One key of another type spoils the list of all records.",
			Old:     "redis.pcall('STRLEN', key)",
			New:     "redis.call('STRLEN', key)",
			FoundBy: []Finder{{"redislock", "TestRecordsBesideOtherKeys"}},
		},
		{
			Name: "sqlite-lists-records-that-are-over", File: "sqlitelock/record.go",
			Breaks:  "A record whose retention is over is listed until it is swept.",
			Old:     "(err != nil || row.ExpiresIn > 0)",
			New:     "(err != nil || row.Name != \"\")",
			FoundBy: []Finder{{"sqlitelock", "TestConformance/RecordEndsWithRetention"}},
		},
	}
}
