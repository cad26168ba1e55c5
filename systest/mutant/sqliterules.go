package mutant

// sqliteRuleMutants are faults of the statements that show package rules what
// there is of a name.
func sqliteRuleMutants() []Mutant {
	const statements = "sqlitelock/statements.go"
	leases := []Finder{{"sqlitelock", "TestLookSeesLeases"}}
	glimpses := []Finder{{"sqlitelock", "TestGlimpse"}}
	places := []Finder{{"sqlitelock", "TestLookSeesPlaces"}}
	return []Mutant{
		{
			Name: "sqlite-look-shows-last-to-end", Invariant: "I10", File: statements,
			Breaks:  "Whoever is refused is told of the lease that ends last.",
			Old:     "AND expiry > ?4 ORDER BY expiry LIMIT 1) AS live",
			New:     "AND expiry > ?4 ORDER BY expiry DESC LIMIT 1) AS live",
			FoundBy: leases,
		},
		{
			Name: "sqlite-kept-lease-is-own", Invariant: "I4", File: statements,
			Breaks:  "A lease that was released, and is kept closed, is granted again to its own ID.",
			Old:     "AND expiry > ?4 AND released = 0), 0),\n\tcoalesce((SELECT last_token",
			New:     "AND expiry > ?4), 0),\n\tcoalesce((SELECT last_token",
			FoundBy: leases,
		},
		{
			Name: "sqlite-over-a-nanosecond-late", Invariant: "I1", File: statements,
			Breaks:  "A lease whose expiry is this very instant is not purged, and its permits count.",
			Old:     "mode = 0 AND (boot_id <> ?3 OR expiry <= ?4))",
			New:     "mode = 0 AND (boot_id <> ?3 OR expiry < ?4))",
			FoundBy: leases,
		},
		{
			Name: "sqlite-lease-of-later-boot-counts", Invariant: "I8", File: statements,
			Breaks:  "Leases of a boot whose ID is above this one's are not purged, and their permits count.",
			Old:     "OR EXISTS (SELECT 1 FROM lease WHERE name = ?1 AND mode <> 0 AND boot_id > ?3)",
			New:     "",
			FoundBy: leases,
		},
		{
			Name: "sqlite-shared-over-a-nanosecond-late", Invariant: "I1", File: statements,
			Breaks:  "A shared lease, or permits, whose expiry is this very instant is not purged, and its permits count.",
			Old:     "mode <> 0 AND (boot_id, expiry) <= (?3, ?4))",
			New:     "mode <> 0 AND (boot_id, expiry) < (?3, ?4))",
			FoundBy: leases,
		},
		{
			Name: "sqlite-glimpse-misses-leases", Invariant: "I1", File: statements,
			Breaks:  "A name that somebody holds is taken for free.",
			Old:     "NOT EXISTS (SELECT 1 FROM lease WHERE name = ?1)",
			New:     "NOT EXISTS (SELECT 1 FROM lease WHERE name = ?1 AND mode <> 0)",
			FoundBy: glimpses,
		},
		{
			Name: "sqlite-glimpse-misses-places", Invariant: "I7", File: statements,
			Breaks:  "A name that nobody holds is granted to whoever comes, in front of those who wait.",
			Old:     "\n\t\tAND NOT EXISTS (SELECT 1 FROM place WHERE name = ?1)",
			New:     "",
			FoundBy: glimpses,
		},
		{
			Name: "sqlite-glimpse-misses-records", File: statements,
			Breaks:  "Work that was done is done again.",
			Old:     "\n\t\tAND NOT EXISTS (SELECT 1 FROM record WHERE name = ?1)",
			New:     "",
			FoundBy: glimpses,
		},
		{
			Name: "sqlite-glimpse-misses-tombstones", Invariant: "I5", File: statements,
			Breaks:  "A request that was cancelled is granted a name that is free.",
			Old:     "\n\t\tAND NOT EXISTS (SELECT 1 FROM cancelled WHERE lease_id = ?2)",
			New:     "",
			FoundBy: glimpses,
		},
		{
			Name: "sqlite-sweep-stands-still", Invariant: "I11", File: "sqlitelock/sweep.go",
			Breaks:  "Each sweep looks at the same leases, and those behind them stay for ever.",
			Old:     "if err == nil && more {",
			New:     "if err == nil && more && name == \"\" {",
			FoundBy: []Finder{{"sqlitelock", "TestSweepGoesRound"}},
		},
		{
			Name: "sqlite-last-place-is-head", Invariant: "I7", File: statements,
			Breaks:  "The latest waiter is taken for the first.",
			Old:     "FROM place WHERE name = ?1 ORDER BY seq LIMIT 1) AS head",
			New:     "FROM place WHERE name = ?1 ORDER BY seq DESC LIMIT 1) AS head",
			FoundBy: places,
		},
		{
			Name: "sqlite-done-work-is-waited-for", Invariant: "I7", File: statements,
			Breaks:  "Whoever waits for work that is done by now keeps its place.",
			Old:     "WHERE name = ?1 AND once = 1 LIMIT ?2)",
			New:     "WHERE name = ?1 AND once = 2 LIMIT ?2)",
			FoundBy: places,
		},
		{
			Name: "sqlite-everybody-gives-up", Invariant: "I7", File: statements,
			Breaks:  "A record sends those home as well who want the lock whatever was done.",
			Old:     "WHERE name = ?1 AND once = 1 LIMIT ?2)",
			New:     "WHERE name = ?1 LIMIT ?2)",
			FoundBy: places,
		},
		{
			Name: "sqlite-served-together-one-token", Invariant: "I2", File: "sqlitelock/queue.go",
			Breaks:  "Readers that are served together get the same token.",
			Old:     "if v.last = int64(token); p.id == id {",
			New:     "if p.id == id {",
			FoundBy: []Finder{{"sqlitelock", "TestTokensOfOneStep"}},
		},
	}
}
