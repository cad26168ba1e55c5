package enginetest_test

var storeMutants = []mutant{
	{fault: "Acquire compares half the ID", want: []string{"RepeatComparesWholeID"}},
	{fault: "braces are cut to the hash tag", want: []string{
		"AcquireAllDoesNotBarge", "AcquireAllErrorChangesNothing", "AcquireAllObeysCancel",
		"AcquireAllRepeatIsGrantedAgain", "AcquireAllTakesAll", "AcquireAllTakesAllOrNone",
		"AcquireAllTakesAllOrNoneUnderContention", "AcquireAllTakesMaxBatch", "AcquireAllTokensGrow",
		"KeepsNamesApart", "ListsByPrefix", "ListsPrefixLiterally", "ListsRecordsByPrefix",
		"RecallReturnsRecordWhole", "WatchTellsGrant", "WatchTellsGrantAcrossEngines",
	}},
	{fault: "capabilities change", want: []string{"ImplementsCapabilities"}},
	{fault: "Close closes the watches", want: []string{"WatchStops"}},
	{fault: "Close ends the leases", want: []string{"CloseLeavesLeases"}},
	{fault: "closed engine serves on", want: []string{"ClosedEngineSaysSo"}},
	{fault: "Complete compares half the ID", want: []string{"CompleteOfLostIsLost"}},
	{fault: "Complete ignores the ID", want: []string{
		"CompleteOfLostIsLost", "CompleteOfStaleOverwritesNothing", "CompleteTwiceIsOnce", "PlaceIsNoLease",
	}},
	{fault: "dead reader stays as long as any", want: []string{"SharedLeaseEndsAlone"}},
	{fault: "Downgrade compares half the ID", want: []string{"DowngradeOfLostIsLost"}},
	{fault: "Downgrade ignores the ID", want: []string{"DowngradeOfLostIsLost", "PlaceIsNoLease"}},
	{fault: "ended context is ignored", want: []string{
		"EndedContextDoesNothing", "ListRecordsReportsError", "ListReportsError",
	}},
	{fault: "exclusive leases never expire", want: []string{
		"CompleteOfLostIsLost", "DowngradeOfLostIsLost", "ExtendOfExpiredIsLost", "AcquireAllDoesNotBarge",
		"HandsOverAtExpiry", "LeaseExpires", "ListsOnlyHeld", "ListsQueuedNames", "ModeEndsWithLease",
		"QueuePassesDeadWaiter", "RefreshLeavesHandedOverLease", "ReleaseOfUnknownIsLost",
		"RepeatAfterExpiryIsNewGrant", "SemaphoreChecksKindOfQueue", "TokensGrowOverExpiry",
		"WatchTellsGrantAtExpiry",
	}},
	{fault: "expiry forgets the last token", want: []string{"TokensGrowOverExpiry"}},
	{fault: "expiry is left to the next comer", want: []string{
		"AcquireAllDoesNotBarge", "HandsOverAtExpiry", "HandsOverWhenPlaceEnds", "KeepForHoldsQueue",
		"QueuePassesDeadWaiter", "RefreshLeavesHandedOverLease", "SemaphorePermitsComeBackOneByOne",
		"WatchTellsGrantAtExpiry",
	}},
	{fault: "Extend compares half the ID", want: []string{"ExtendComparesWholeID"}},
	{fault: "Extend ignores the ID", want: []string{
		"CompleteStoresRecordAndEndsLease", "ExtendAnswersEachInOrder", "ExtendComparesWholeID",
		"ExtendOfStaleLeavesSuccessor", "PlaceIsNoLease", "SemaphoreGrantsLimit",
		"SemaphorePermitsComeBackOneByOne", "SharedLeaseEndsAlone", "SharedLeasesAreCompatible",
	}},
	{fault: "KeepFor forgets the last token", want: []string{"TokensGrowOverKeepFor"}},
	{fault: "KeepFor leaves the lease live to Acquire", want: []string{"KeepForClosesName"}},
	{fault: "KeepFor leaves the lease live to Complete", want: []string{"CompleteOfLostIsLost"}},
	{fault: "KeepFor leaves the lease live to Downgrade", want: []string{"DowngradeOfLostIsLost"}},
	{fault: "KeepFor leaves the lease live to Extend", want: []string{
		"KeepForEndsLease", "KeepForOfSharedLetsSharedIn",
	}},
	{fault: "KeepFor leaves the lease live to Refresh", want: []string{"KeepForEndsLease"}},
	{fault: "KeepFor never ends", want: []string{
		"KeepForClosesName", "KeepForEnds", "KeepForHoldsQueue", "TokensGrowOverKeepFor",
	}},
	{fault: "names are cut", want: []string{"KeepsNamesApart"}},
	{fault: "names are folded", want: []string{"KeepsNamesApart", "ListsByPrefix", "ListsRecordsByPrefix"}},
	{fault: "optional methods are missing", want: []string{"ImplementsCapabilities"}},
	{fault: "other leases never expire", want: []string{
		"ModeEndsWithLease", "SemaphoreChecksKindOfQueue", "SemaphorePermitsComeBackOneByOne",
		"SharedLeaseEndsAlone", "TokensGrowAcrossModes",
	}},
	{fault: "permits of an expired lease leak", want: []string{
		"SemaphoreChecksKindOfQueue", "SemaphorePermitsComeBackOneByOne",
	}},
	{fault: "place that is over is handed the lock", want: []string{"HandsOverAtExpiry", "HandsOverWhenPlaceEnds"}},
	{fault: "places are never given up", want: []string{
		"HandsOverAtExpiry", "HandsOverWhenPlaceEnds", "QueuePlaceIsGivenUp", "RefreshNeverCreates",
	}},
	{fault: "Queue compares half the ID", want: []string{"QueueComparesWholeID"}},
	{fault: "Refresh compares half the ID", want: []string{"QueueComparesWholeID"}},
	{fault: "Refresh ignores the ID", want: []string{
		"CompleteHandsOver", "DowngradeHandsOver", "HandsOverAtExpiry", "KeepForHoldsQueue", "QueueComparesWholeID",
		"RefreshAnswersEachInOrder", "RefreshNeverCreates", "RefreshNeverShortens", "RefreshRenewsPlace",
		"RefreshSaysWhoAndHowLong", "RefreshTakesMaxBatch", "SemaphorePermitsComeBackOneByOne",
		"SharedDoesNotOvertakeExclusive",
	}},
	{fault: "Release compares half the ID", want: []string{"ReleaseComparesWholeID"}},
	{fault: "Release ignores the ID", want: []string{
		"CancelLeavesOthers", "CompleteTellsWatches", "HandsOverAtRelease", "ListsQueuedNames", "QueueComparesWholeID",
		"RefreshNeverCreates", "ReleaseComparesWholeID", "ReleaseLeavesQueue", "ReleaseOfStaleLeavesSuccessor",
		"SemaphoreGrantsLimit", "SemaphoreLimitMayChangeWhenUnused", "WatchKeepsGrant", "WatchKeepsLatestNotice",
		"WatchStops", "WatchTellsAllReaders", "WatchTellsGrant", "WatchTellsGrantAcrossEngines",
		"WatchTellsGrantAtExpiry", "WatchTellsWhoAskedLast",
	}},
	{fault: "repeated release lengthens KeepFor", want: []string{"KeepForNotLengthenedByRepeat"}},
	{fault: "retention never ends", want: []string{"RecordEndsWithRetention"}},
	{fault: "second Close fails", want: []string{"ClosedEngineSaysSo"}},
}
