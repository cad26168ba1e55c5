package mutant

// sqliteQueueMutants are faults of what the engine on one file does for long
// queues.
func sqliteQueueMutants() []Mutant {
	return []Mutant{
		{
			Name: "sqlite-queue-searched", Invariant: "I7", File: "sqlitelock/statements.go",
			Breaks:  "Every request looks through the whole queue for places that are over, under the write lock.",
			Old:     "OR EXISTS (SELECT 1 FROM place WHERE name = ?1 AND (boot_id, expiry) <= (?3, ?4))",
			New:     "OR EXISTS (SELECT 1 FROM place WHERE name = ?1 AND (+boot_id, expiry) <= (?3, ?4))",
			FoundBy: []Finder{{"sqlitelock", "TestQueueCostDoesNotGrow"}},
		},
		{
			Name: "sqlite-transaction-unbounded", Invariant: "I7", File: "sqlitelock/queue.go",
			Breaks:  "One transaction purges and grants as much as there is, and keeps everybody from renewing meanwhile.",
			Old:     "const maxSteps = 256",
			New:     "const maxSteps = 1 << 20",
			FoundBy: []Finder{{"sqlitelock", "TestTransactionsAreBounded"}},
		},
		{
			Name: "sqlite-dead-places-keep-waiting", Invariant: "I7", File: "sqlitelock/group.go",
			Breaks:  "A request that finds more dead places than one transaction may purge is answered as if the lock were held.",
			Old:     "if r.t.again = errors.Is(err, errUnfinished); r.t.again {",
			New:     "if errors.Is(err, errUnfinished) {",
			FoundBy: []Finder{{"sqlitelock", "TestTransactionsAreBounded"}},
		},
		{
			Name: "sqlite-release-stops-half-way", Invariant: "I7", File: "sqlitelock/queue.go",
			Breaks:  "A release hands the lock over to as many readers as one transaction may grant, and leaves the others waiting.",
			Old:     "\t\tt.rest = name\n",
			New:     "",
			FoundBy: []Finder{{"sqlitelock", "TestTransactionsAreBounded"}},
		},
		{
			Name: "sqlite-permits-leak", Invariant: "I1", File: "sqlitelock/schema.sql",
			Breaks:  "Permits that are given back stay taken.",
			Old:     "UPDATE taken SET permits = permits - OLD.permits WHERE name = OLD.name;",
			New:     "UPDATE taken SET permits = permits WHERE name = OLD.name;",
			FoundBy: []Finder{sqlite("SemaphorePermitsComeBackOneByOne"), {"sqlitelock", "TestTransactionsAreBounded"}},
		},
	}
}
