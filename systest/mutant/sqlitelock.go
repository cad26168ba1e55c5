package mutant

// sqlite returns a requirement of enginetest as package sqlitelock runs it.
func sqlite(requirement string) Finder { return conformance("sqlitelock", requirement) }

// sqliteMutants are faults of the engine on one file.
func sqliteMutants() []Mutant {
	return []Mutant{
		{
			Name: "sqlite-wall-clock", Invariant: "I8", File: "sqlitelock/clock.go",
			Breaks:  "Leases end by the wall clock, which can be set.",
			Old:     "boot:   boot.Nanoseconds(),",
			New:     "boot:   boot.Nanoseconds()*0 + c.wall().UnixNano(),",
			FoundBy: []Finder{{"sqlitelock", "TestWallClockSteps"}},
		},
		{
			Name: "sqlite-clock-before-write-lock", Invariant: "I8", File: "sqlitelock/group.go",
			Breaks: "A transaction reads its clock before it waits for the write lock.",
			Old: "\tif err := e.patient(ctx, func() error { return e.conn.run(beginSQL) }); err != nil {\n\t\treturn refused(err)\n\t}\n" +
				"\tnow, err := e.reader(e.conn)\n",
			New: "\tnow, err := e.reader(e.conn)\n" +
				"\tif err := e.patient(ctx, func() error { return e.conn.run(beginSQL) }); err != nil {\n\t\treturn refused(err)\n\t}\n",
			FoundBy: []Finder{{"sqlitelock", "TestClockIsReadUnderTheWriteLock"}},
		},
		{
			Name: "sqlite-extend-without-owner", Invariant: "I4", File: "sqlitelock/statements.go",
			Breaks:  "Extend lengthens the lease of whoever holds the name.",
			Old:     "UPDATE lease SET expiry = max(expiry, ?5)\n\t\tWHERE name = ?1 AND mode IN (0, 1, 2) AND lease_id = ?3",
			New:     "UPDATE lease SET expiry = max(expiry, ?5)\n\t\tWHERE name = ?1 AND ?3 <> ''",
			FoundBy: []Finder{sqlite("ExtendOfStaleLeavesSuccessor")},
		},
		{
			Name: "sqlite-extend-revives", Invariant: "I4", File: "sqlitelock/statements.go",
			Breaks:  "Extend of a lease that has expired revives it.",
			Old:     "UPDATE lease SET expiry = max(expiry, ?5)\n\t\tWHERE name = ?1 AND mode IN (0, 1, 2) AND lease_id = ?3 AND +boot_id = ?2 AND expiry > ?4",
			New:     "UPDATE lease SET expiry = max(expiry, ?5)\n\t\tWHERE name = ?1 AND mode IN (0, 1, 2) AND lease_id = ?3 AND +boot_id = ?2 AND ?4 > 0",
			FoundBy: []Finder{sqlite("ExtendOfExpiredIsLost")},
		},
		{
			Name: "sqlite-token-without-clock", Invariant: "I2", File: "sqlitelock/acquire.go",
			Breaks:  "Only the first token of a name follows the clock and MinToken; the others count on.",
			Old:     "rules.NextToken(uint64(v.last), least)",
			New:     "rules.NextToken(uint64(v.last), map[bool]uint64{true: least}[v.last == 0])",
			FoundBy: []Finder{sqlite("MinTokenLiftsToken")},
		},
		{
			Name: "sqlite-no-tombstone", Invariant: "I5", File: "sqlitelock/release.go",
			Breaks:  "The cancel of an acquire is not remembered, so that a request that it has overtaken is granted.",
			Old:     "if req.Cancel {",
			New:     "if req.Cancel && req.Name == \"\" {",
			FoundBy: []Finder{sqlite("CancelStopsLateAcquire")},
		},
		{
			Name: "sqlite-lost-wake-up", Invariant: "I7", File: "sqlitelock/tx.go",
			Breaks:  "A waiter that is handed the lock is not told.",
			Old:     "e.send(t.notices)",
			New:     "_ = t.notices",
			FoundBy: []Finder{sqlite("WatchTellsGrant")},
		},
		{
			Name: "sqlite-barging", Invariant: "I7", File: "driver/rules/rules.go",
			Breaks:  "A new request that fits is granted in front of those who wait.",
			Old:     "return !v.Queued && v.Fits(n) }",
			New:     "return v.Fits(n) }",
			FoundBy: []Finder{sqlite("SharedDoesNotOvertakeExclusive")},
		},
		{
			Name: "sqlite-redeem-does-not-consume", Invariant: "", File: "sqlitelock/vault.go",
			Breaks:  "A one-time token can be redeemed again.",
			Old:     "err = t.sql.run(redeemSQL, t.on(req.Digest, req.By, ceilMicros(driver.RedeemGrace))...)",
			New:     "",
			FoundBy: []Finder{sqlite("RedeemHandsOutOnce")},
		},
		{
			Name: "sqlite-replaced-file-used", Invariant: "I1", File: "sqlitelock/files.go",
			Breaks:  "A process goes on granting in a file that was deleted, beside those that use the new one.",
			Old:     "case !os.SameFile(info, set[i]):",
			New:     "case info == nil:",
			FoundBy: []Finder{{"sqlitelock", "TestDatabaseIsGone"}},
		},
		{
			Name: "sqlite-redeem-not-flushed", Invariant: "", File: "sqlitelock/group.go",
			Breaks:  "That a one-time token was redeemed is lost in a power cut.",
			Old:     "`PRAGMA synchronous = FULL`",
			New:     "`PRAGMA synchronous = NORMAL`",
			FoundBy: []Finder{{"sqlitelock", "TestVaultIsFlushed"}},
		},
		{
			Name: "sqlite-release-serves-nobody", Invariant: "I7", File: "sqlitelock/statements.go",
			Breaks:  "A release does not hand the lock over: the next waiter finds out when it looks.",
			Old:     "AND NOT EXISTS (SELECT 1 FROM place WHERE place.name = ?1)`",
			New:     "AND NOT EXISTS (SELECT 1 FROM place WHERE place.name = ?1 || '-')`",
			FoundBy: []Finder{sqlite("HandsOverAtRelease")},
		},
		{
			Name: "sqlite-lease-outlives-boot", Invariant: "I8", File: "sqlitelock/statements.go",
			Breaks:  "A lease of before a reboot can be extended after it.",
			Old:     "UPDATE lease SET expiry = max(expiry, ?5)\n\t\tWHERE name = ?1 AND mode IN (0, 1, 2) AND lease_id = ?3 AND +boot_id = ?2 AND",
			New:     "UPDATE lease SET expiry = max(expiry, ?5)\n\t\tWHERE name = ?1 AND mode IN (0, 1, 2) AND lease_id = ?3 AND ?2 <> '' AND",
			FoundBy: []Finder{{"sqlitelock", "TestReboot"}},
		},
	}
}
