package enginetest_test

var queueMutants = []mutant{
	{fault: "call to look replaces a grant", want: []string{"WatchKeepsGrant"}},
	{fault: "hand-over forgets the holder", want: []string{"PlaceKeepsHolder"}},
	{fault: "hand-over ignores MinToken", want: []string{"TokensGrowOverHandOver"}},
	{fault: "hand-over repeats the last token", want: []string{
		"BreakHandsOver", "CompleteHandsOver", "HandsOverAtRelease", "HandsOverToSharedTogether",
		"KeepForHoldsQueue", "TokensGrowOverHandOver",
	}},
	{fault: "handed-over lease has the whole TTL", want: []string{
		"HandedOverLeaseEndsWithPlace", "QueuePassesDeadWaiter", "RefreshLeavesHandedOverLease",
	}},
	{fault: "handed-over lease has the whole WaiterTTL", want: []string{"HandedOverLeaseEndsWithPlace"}},
	{fault: "handed-over lease never ends", want: []string{
		"HandedOverLeaseEndsWithPlace", "HandedOverLeaseIsLengthened", "QueuePassesDeadWaiter",
		"RefreshLeavesHandedOverLease",
	}},
	{fault: "handed-over place stays in the queue", want: []string{
		"BreakHandsOver", "CompleteHandsOver", "DowngradeDoesNotPassExclusive", "DowngradeHandsOver",
		"HandsOverAtExpiry", "HandsOverAtRelease", "HandsOverToSharedTogether", "KeepForHoldsQueue",
		"QueueServesExclusiveAfterReaders", "QueueServesInOrder", "SemaphorePermitsComeBackOneByOne",
		"SemaphoreServesInOrder", "SemaphoreServesLargeRequest",
	}},
	{fault: "holder of a place is not copied", want: []string{"PlaceKeepsHolder"}},
	{fault: "last comes first", want: []string{
		"BreakHandsOver", "CompleteHandsOver", "CompleteTellsWatches", "DowngradeDoesNotPassExclusive",
		"DowngradeHandsOver", "HandsOverAtCancel", "HandsOverAtExpiry", "HandsOverAtRelease",
		"HandsOverToSharedTogether", "HandsOverWhenPlaceEnds", "InspectReportsQueue", "InspectShowsFirstPlaces",
		"KeepForHoldsQueue", "ListReportsAsInspect", "QueueComparesWholeID", "QueueGivesEachAPlace",
		"QueueKeepsPlace", "QueuePassesDeadWaiter", "QueuePlaceIsGivenUp", "QueueServesExclusiveAfterReaders",
		"QueueServesInOrder", "RefreshAnswersEachInOrder", "RefreshLeavesHandedOverLease", "RefreshRenewsPlace",
		"RefreshTakesMaxBatch", "ReleaseLeavesQueue", "SemaphorePermitsComeBackOneByOne", "SemaphoreServesInOrder",
		"SemaphoreServesLargeRequest", "SharedDoesNotOvertakeExclusive", "TokensGrowOverHandOver",
		"WatchTellsAllReaders", "WatchTellsGrant", "WatchTellsGrantAcrossEngines", "WatchTellsWhoAskedLast",
		"RefusalSaysQueue",
	}},
	{fault: "news goes to the engine that asked first", want: []string{"WatchTellsWhoAskedLast"}},
	{fault: "news goes to the first of several", want: []string{
		"CompleteTellsWatches", "WatchKeepsLatestNotice", "WatchTellsAllReaders", "WatchTellsGrant",
		"WatchTellsGrantAcrossEngines", "WatchTellsWhoAskedLast",
	}},
	{fault: "news has the token before", want: []string{
		"CompleteTellsWatches", "WatchKeepsGrant", "WatchKeepsLatestNotice", "WatchStops", "WatchTellsAllReaders",
		"WatchTellsGrant", "WatchTellsGrantAcrossEngines", "WatchTellsGrantAtExpiry", "WatchTellsWhoAskedLast",
	}},
	{fault: "news is lost", want: []string{
		"CompleteTellsWatches", "WatchKeepsGrant", "WatchKeepsLatestNotice", "WatchMissesNoGrant", "WatchStops",
		"WatchTellsAllReaders", "WatchTellsGrant", "WatchTellsGrantAcrossEngines", "WatchTellsGrantAtExpiry",
		"WatchTellsWhoAskedLast",
	}},
	{fault: "news of a grant says to look", want: []string{
		"CompleteTellsWatches", "WatchKeepsGrant", "WatchKeepsLatestNotice", "WatchStops", "WatchTellsAllReaders",
		"WatchTellsGrant", "WatchTellsGrantAcrossEngines", "WatchTellsGrantAtExpiry", "WatchTellsWhoAskedLast",
	}},
	{fault: "news of a place that is gone is lost", want: []string{"CompleteTellsWatches"}},
	{fault: "news piles up", want: []string{"WatchKeepsGrant", "WatchKeepsLatestNotice"}},
	{fault: "news stays in the engine", want: []string{"WatchTellsGrantAcrossEngines", "WatchTellsWhoAskedLast"}},
	{fault: "old news is kept", want: []string{"WatchKeepsLatestNotice"}},
	{fault: "one waiter is served at a time", want: []string{
		"DowngradeHandsOver", "HandsOverToSharedTogether", "SemaphoreServesInOrder", "WatchTellsAllReaders",
	}},
	{fault: "place is given in two steps", want: []string{"QueueGivesEachAPlace", "WatchMissesNoGrant"}},
	{fault: "place is not renewed by a repeat", want: []string{"InspectReportsQueue", "QueueKeepsPlace"}},
	{fault: "Refresh answers Held if lost", want: []string{
		"CompleteHandsOver", "KeepForEndsLease", "QueueComparesWholeID", "RefreshAnswersEachInOrder",
		"RefreshNeverCreates",
	}},
	{fault: "Refresh answers the other way round", want: []string{
		"RefreshAnswersEachInOrder", "RefreshTakesMaxBatch",
	}},
	{fault: "Refresh creates a lease", want: []string{"RefreshNeverCreates"}},
	{fault: "Refresh creates a place", want: []string{
		"CompleteHandsOver", "QueueComparesWholeID", "RefreshNeverCreates",
	}},
	{fault: "Refresh does not say by whom", want: []string{"RefreshSaysWhoAndHowLong"}},
	{fault: "Refresh does not say the place", want: []string{
		"RefreshAnswersEachInOrder", "RefreshRenewsPlace", "RefreshTakesMaxBatch",
		"SharedDoesNotOvertakeExclusive", "RefusalSaysQueue",
	}},
	{fault: "Refresh does not tell the grant", want: []string{
		"HandsOverAtRelease", "QueuePassesDeadWaiter", "RefreshAnswersEachInOrder",
	}},
	{fault: "Refresh ends after 100", want: []string{"RefreshTakesMaxBatch"}},
	{fault: "Refresh ends at the first failure", want: []string{"RefreshAnswersEachInOrder"}},
	{fault: "Refresh leaves places", want: []string{"RefreshAnswersEachInOrder", "RefreshRenewsPlace"}},
	{fault: "Refresh lengthens leases", want: []string{"RefreshLeavesHandedOverLease"}},
	{fault: "Refresh notices no expiry", want: []string{
		"HandsOverAtExpiry", "KeepForHoldsQueue", "QueuePassesDeadWaiter",
		"RefreshLeavesHandedOverLease", "SemaphorePermitsComeBackOneByOne",
	}},
	{fault: "Refresh shortens leases", want: []string{
		"HandedOverLeaseIsLengthened", "RefreshLeavesHandedOverLease", "RefreshNeverShortens",
	}},
	{fault: "Refresh shortens places", want: []string{"RefreshNeverShortens"}},
	{fault: "Refresh shows the token", want: []string{"RefreshAnswersEachInOrder", "RefreshSaysWhoAndHowLong"}},
	{fault: "repeat goes to the end of the queue", want: []string{
		"InspectReportsQueue", "QueueComparesWholeID", "QueueKeepsPlace", "ReleaseLeavesQueue",
		"WatchTellsWhoAskedLast", "RefusalSaysQueue",
	}},
	{fault: "repeat waits since now", want: []string{"InspectReportsQueue"}},
	{fault: "small requests overtake in the queue", want: []string{
		"DowngradeDoesNotPassExclusive", "DowngradeHandsOver", "HandsOverToSharedTogether",
		"QueueServesExclusiveAfterReaders", "SemaphoreServesInOrder", "SemaphoreServesLargeRequest",
		"SharedDoesNotOvertakeExclusive",
	}},
	{fault: "Stop closes the channel", want: []string{"WatchStops"}},
	{fault: "Stop does nothing", want: []string{"WatchStops"}},
	{fault: "Stop stops every watch of the lease ID", want: []string{"WatchStops"}},
	{fault: "waiter is dropped instead of served", want: []string{
		"AcquireAllDoesNotBarge", "BreakHandsOver", "CompleteHandsOver", "CompleteTellsWatches",
		"DowngradeDoesNotPassExclusive", "DowngradeHandsOver", "HandedOverLeaseEndsWithPlace",
		"HandedOverLeaseIsLengthened", "HandsOverAtCancel", "HandsOverAtExpiry", "HandsOverAtRelease",
		"HandsOverToSharedTogether", "HandsOverWhenPlaceEnds", "KeepForHoldsQueue", "OnceIsGrantedWithoutRecord",
		"PlaceKeepsHolder", "QueueGivesEachAPlace", "QueuePassesDeadWaiter", "QueueServesExclusiveAfterReaders",
		"QueueServesInOrder", "RecordBindsOnlyOnce", "RefreshAnswersEachInOrder", "RefreshLeavesHandedOverLease",
		"SemaphoreChecksKindOfQueue", "SemaphorePermitsComeBackOneByOne", "SemaphoreServesInOrder",
		"SemaphoreServesLargeRequest", "TokensGrowOverHandOver", "WatchKeepsGrant", "WatchKeepsLatestNotice",
		"WatchMissesNoGrant", "WatchStops", "WatchTellsAllReaders", "WatchTellsGrant",
		"WatchTellsGrantAcrossEngines", "WatchTellsGrantAtExpiry", "WatchTellsWhoAskedLast",
		"SinceBeginsWithHandOver",
	}},
}
