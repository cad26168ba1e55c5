package enginetest_test

var inspectMutants = []mutant{
	{fault: "Inspect drops the end of a place", want: []string{
		"InspectReportsQueue", "RefreshAnswersEachInOrder", "RefreshNeverShortens",
	}},
	{fault: "Inspect drops the holder", want: []string{
		"DowngradeKeepsLease", "AcquireAllTakesAll", "HolderIsCopied", "InspectReportsHolder", "PlaceKeepsHolder",
	}},
	{fault: "Inspect drops the holder of a place", want: []string{"InspectReportsQueue", "PlaceKeepsHolder"}},
	{fault: "Inspect drops the length of the queue", want: []string{
		"FirstLeavesPlace", "RefreshGivesUpNoLease",
		"BreakHandsOver", "DowngradeDoesNotPassExclusive", "DowngradeHandsOver", "HandsOverAtExpiry",
		"HandsOverAtRelease", "HandsOverToSharedTogether", "InspectReportsQueue",
		"InspectShowsFirstPlaces", "KeepForHoldsQueue", "PlaceIsNoLease", "QueueKeepsPlace",
		"QueueServesExclusiveAfterReaders", "QueueServesInOrder", "SemaphorePermitsComeBackOneByOne",
		"SemaphoreServesInOrder", "SemaphoreServesLargeRequest", "SharedDoesNotOvertakeExclusive",
	}},
	{fault: "Inspect counts the permits of one lease", want: []string{"KeepForOfPermitsKeepsThem", "SemaphoreCountsPermits"}},
	{fault: "Inspect drops the limit", want: []string{"AcquireAllTakesAll", "KeepForOfPermitsKeepsThem", "SemaphoreCountsPermits"}},
	{fault: "Inspect drops the mode", want: []string{
		"DowngradeLetsSharedIn", "AcquireAllTakesAll", "KeepForOfPermitsKeepsThem", "KeepForOfSharedLetsSharedIn",
		"SemaphoreCountsPermits", "SharedLeasesAreCompatible",
	}},
	{fault: "Inspect drops the mode of a place", want: []string{"InspectReportsQueue"}},
	{fault: "Inspect drops the permits", want: []string{
		"AcquireAllTakesAll", "KeepForOfPermitsKeepsThem", "SemaphoreCountsPermits",
	}},
	{fault: "Inspect drops the token", want: []string{
		"RefreshGivesUpNoLease",
		"AcquireAllTakesAll", "AcquireAllTakesMaxBatch", "BreakHandsOver", "CompleteHandsOver", "CompleteTellsWatches",
		"DowngradeKeepsLease", "HandsOverAtRelease", "HandsOverToSharedTogether", "InspectReportsLease",
		"KeepForHoldsQueue", "RefreshAnswersEachInOrder", "TokenKeptByExtend", "TokensGrowOverHandOver",
		"WatchKeepsGrant", "WatchKeepsLatestNotice", "WatchStops", "WatchTellsAllReaders", "WatchTellsGrant",
		"WatchTellsGrantAcrossEngines", "WatchTellsGrantAtExpiry", "WatchTellsWhoAskedLast",
		"TokensLeaveRoom",
	}},
	{fault: "Inspect forgets the token of a free name", want: []string{"InspectRemembersToken"}},
	{fault: "Inspect of a free name fails", want: []string{
		"DigestIsNoName", "EndedContextDoesNothing", "InspectOfUnknownIsFree", "RefusesMethodsIfUnsupported", "RefusesModeOutOfRange",
		"RefusesReplicasIfUnsupported", "VaultOfUnknownFindsNothing",
	}},
	{fault: "Inspect reports what is left as the TTL", want: []string{"InspectReportsLease"}},
	{fault: "Inspect shows few places", want: []string{"InspectShowsFirstPlaces"}},
	{fault: "Inspect turns the queue round", want: []string{
		"FirstLeavesPlace",
		"DowngradeDoesNotPassExclusive", "DowngradeHandsOver", "HandsOverToSharedTogether",
		"InspectReportsQueue", "InspectShowsFirstPlaces", "KeepForHoldsQueue", "QueueKeepsPlace",
		"QueueServesExclusiveAfterReaders", "QueueServesInOrder", "SemaphoreServesInOrder",
		"SemaphoreServesLargeRequest", "SharedDoesNotOvertakeExclusive",
	}},
	{fault: "List does not stop", want: []string{"ListStopsEarly"}},
	{fault: "List drops the length of the queue", want: []string{"ListReportsAsInspect"}},
	{fault: "List drops the permits", want: []string{"ListReportsAsInspect"}},
	{fault: "List ignores the prefix", want: []string{"ListsByPrefix", "ListsPrefixLiterally"}},
	{fault: "List is not sensitive to case", want: []string{"ListsByPrefix"}},
	{fault: "List leaves out names without a holder", want: []string{"ListsQueuedNames"}},
	{fault: "List shows free names", want: []string{
		"DigestIsNoName", "ListsOnlyHeld", "RecordBindsOnlyOnce", "VaultOfUnknownFindsNothing",
	}},
	{fault: "List shows names with a record", want: []string{"ListsQueuedNames", "RecordBindsOnlyOnce"}},
	{fault: "List swallows errors", want: []string{
		"ClosedEngineSaysSo", "EndedContextDoesNothing", "ListReportsError",
	}},
	{fault: "List takes ? for any character", want: []string{"ListsPrefixLiterally"}},
	{fault: "List yields one twice", want: []string{"ListsEachOnce"}},
}
