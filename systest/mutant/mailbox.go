package mutant

// mailboxMutants are faults of the watches that all engines share.
func mailboxMutants() []Mutant {
	return []Mutant{
		{
			Name: "call-to-look-replaces-grant", Invariant: "I7", File: "driver/mailbox/mailbox.go",
			Breaks:  "A notice to look takes the place of a grant that was not received.",
			Old:     "told && notice.Token == 0 {",
			New:     "told && notice.Token == driver.MaxToken {",
			FoundBy: []Finder{{"driver/mailbox", "TestNoticeGivesWay"}, {"driver/mailbox", "TestGrantIsNeverLost"}, conformance("memlock", "WatchKeepsGrant")},
			Hang:    true,
		},
		{
			Name: "one-watch-is-told", Invariant: "I7", File: "driver/mailbox/mailbox.go",
			Breaks:  "Of several who watch a lease ID only one is told.",
			Old:     "\t\tw.tell(notice)\n",
			New:     "\t\tw.tell(notice)\n\t\tbreak\n",
			FoundBy: []Finder{{"driver/mailbox", "TestNoticeGivesWay"}, {"driver/mailbox", "TestTellAll"}},
		},
		{
			Name: "stop-stops-the-others", Invariant: "I7", File: "driver/mailbox/mailbox.go",
			Breaks:  "Whoever stops a watch stops all of the lease ID.",
			Old:     "if i.watches == nil {",
			New:     "if i.watches == nil || w != nil {",
			FoundBy: []Finder{{"driver/mailbox", "TestStop"}, {"driver/mailbox", "TestNote"}},
		},
		{
			Name: "stopped-watch-costs", Invariant: "I11", File: "driver/mailbox/mailbox.go",
			Breaks:  "A lease ID is remembered after the last watch of it was stopped.",
			Old:     "if i.watches == nil {",
			New:     "if i.watches == nil && w == nil {",
			FoundBy: []Finder{{"driver/mailbox", "TestStop"}, {"driver/mailbox", "TestGrantIsNeverLost"}, {"sqlitelock", "TestStoppedWatches"}},
		},
	}
}
