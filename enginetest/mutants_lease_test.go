package enginetest_test

var leaseMutants = []mutant{
	{fault: "batch answers failures first", want: []string{"ExtendAnswersEachInOrder"}},
	{fault: "batch ends after 100", want: []string{"ExtendTakesMaxBatch"}},
	{fault: "batch ends at the first failure", want: []string{"ExtendAnswersEachInOrder"}},
	{fault: "cancel ends whatever is there", want: []string{
		"CancelLeavesOthers", "CompleteTellsWatches", "KeepForObeysCancel", "ListsQueuedNames",
		"RefreshNeverCreates", "ReleaseLeavesQueue", "SemaphoreLimitMayChangeWhenUnused", "WatchKeepsGrant",
		"WatchKeepsLatestNotice", "WatchStops", "WatchTellsAllReaders", "WatchTellsGrant",
		"WatchTellsGrantAcrossEngines", "WatchTellsGrantAtExpiry", "WatchTellsWhoAskedLast", "RefusalSaysQueue",
	}},
	{fault: "cancel hands over to nobody", want: []string{
		"HandsOverAtCancel", "HandsOverWhenPlaceEnds", "WatchTellsAllReaders", "WatchTellsGrant",
		"WatchTellsGrantAcrossEngines",
	}},
	{fault: "cancel leaves the lease", want: []string{
		"CancelEndsLease", "CompleteOfLostIsLost", "HandsOverAtCancel", "ListsOnlyHeld", "WatchTellsGrant",
		"WatchTellsGrantAcrossEngines",
	}},
	{fault: "Extend ignores the token", want: []string{"ExtendComparesToken"}},
	{fault: "Downgrade changes the token", want: []string{"DowngradeKeepsLease"}},
	{fault: "Downgrade does nothing", want: []string{
		"DowngradeHandsOver", "DowngradeLetsSharedIn", "DowngradeTwiceIsOnce", "WatchTellsAllReaders",
	}},
	{fault: "Downgrade drops the holder", want: []string{"DowngradeKeepsLease"}},
	{fault: "Downgrade gives the lock up", want: []string{
		"DowngradeDoesNotPassExclusive", "DowngradeHandsOver", "DowngradeKeepsLease", "DowngradeLetsSharedIn",
		"DowngradeTwiceIsOnce", "SinceKeptByDowngrade",
	}},
	{fault: "Downgrade lets all readers in", want: []string{"DowngradeDoesNotPassExclusive", "DowngradeHandsOver"}},
	{fault: "Downgrade of a lost lease is not an error", want: []string{"DowngradeOfLostIsLost", "PlaceIsNoLease"}},
	{fault: "Downgrade starts the TTL anew", want: []string{"DowngradeKeepsLease"}},
	{fault: "Downgrade takes a place for a lease", want: []string{"PlaceIsNoLease"}},
	{fault: "Downgrade wakes nobody", want: []string{"DowngradeHandsOver", "WatchTellsAllReaders"}},
	{fault: "errors carry the name", want: []string{"ErrorsLeaveOutName"}},
	{fault: "Extend changes the token", want: []string{
		"ExtendComparesToken",
		"AcquireAllRepeatIsGrantedAgain", "HandedOverLeaseIsLengthened", "RepeatIsGrantedAgain", "TokenKeptByExtend",
	}},
	{fault: "Extend does nothing", want: []string{
		"ExtendAnswersEachInOrder", "ExtendLengthens", "ExtendTakesMaxBatch", "AcquireAllRepeatIsGrantedAgain",
		"HandedOverLeaseIsLengthened", "RepeatNeverShortens", "SharesStoreAcrossEngines",
	}},
	{fault: "Extend re-creates a lost lease", want: []string{
		"BreakEndsLease", "CompleteStoresRecordAndEndsLease", "ExtendAnswersEachInOrder", "ExtendOfExpiredIsLost",
		"ExtendOfReleasedIsLost",
	}},
	{fault: "Extend shortens", want: []string{"ExtendNeverShortens"}},
	{fault: "Extend takes a place for a lease", want: []string{"PlaceIsNoLease"}},
	{fault: "Extend wakes the waiters", want: []string{"WatchIgnoresExtend"}},
	{fault: "KeepFor closes a free name", want: []string{"KeepForNeedsLease"}},
	{fault: "KeepFor is added to the lease", want: []string{
		"KeepForClosesName", "KeepForEnds", "KeepForEndsLease", "KeepForHoldsQueue", "KeepForNotLengthenedByRepeat",
		"TokensGrowOverKeepFor",
	}},
	{fault: "KeepFor is ignored", want: []string{
		"BreakLeavesKeptName", "BreakOfClosedLeavesLease", "BreakOpensKeptName", "CompleteOfLostIsLost",
		"DowngradeOfLostIsLost", "KeepForClosesName", "KeepForEndsLease", "KeepForHoldsQueue",
		"KeepForNotLengthenedByRepeat", "KeepForObeysCancel", "KeepForOfPermitsKeepsThem",
		"KeepForOfSharedLetsSharedIn", "RefusalSaysReleased",
	}},
	{fault: "no tombstone", want: []string{
		"CancelEndsLease", "CancelIsRemembered", "CancelStopsLateAcquire", "AcquireAllObeysCancel",
		"KeepForObeysCancel", "ReleaseLeavesQueue",
	}},
	{fault: "no tombstone with KeepFor", want: []string{"KeepForObeysCancel"}},
	{fault: "place outlives the cancel", want: []string{
		"HandsOverWhenPlaceEnds", "RefreshNeverCreates", "ReleaseLeavesQueue", "SemaphoreLimitMayChangeWhenUnused",
		"WatchTellsAllReaders", "RefusalSaysQueue",
	}},
	{fault: "place outlives the release", want: []string{
		"HandsOverWhenPlaceEnds", "RefreshNeverCreates", "ReleaseLeavesQueue", "SemaphoreLimitMayChangeWhenUnused",
		"WatchTellsAllReaders", "RefusalSaysQueue",
	}},
	{fault: "place that is left hands over to nobody", want: []string{
		"HandsOverWhenPlaceEnds", "WatchTellsAllReaders",
	}},
	{fault: "release drops the queue", want: []string{
		"FirstLeavesPlace", "RefreshGivesUpNoLease",
		"DowngradeDoesNotPassExclusive", "DowngradeHandsOver", "HandedOverLeaseEndsWithPlace",
		"HandedOverLeaseIsLengthened", "HandsOverAtCancel", "HandsOverAtRelease", "HandsOverToSharedTogether",
		"OnceIsGrantedWithoutRecord", "PlaceKeepsHolder", "QueueGivesEachAPlace", "QueuePassesDeadWaiter",
		"QueueServesExclusiveAfterReaders", "QueueServesInOrder", "RecordBindsOnlyOnce",
		"RefreshAnswersEachInOrder", "RefreshLeavesHandedOverLease", "SemaphoreServesInOrder",
		"SemaphoreServesLargeRequest", "TokensGrowOverHandOver", "WatchKeepsGrant", "WatchKeepsLatestNotice",
		"WatchMissesNoGrant", "WatchStops", "WatchTellsAllReaders", "WatchTellsGrant",
		"WatchTellsGrantAcrossEngines", "WatchTellsWhoAskedLast", "SinceBeginsWithHandOver",
		"TokensLeaveRoom",
	}},
	{fault: "release forgets the last token", want: []string{
		"BreakOfStaleLeavesSuccessor", "ForgetLeavesLease", "AcquireAllTokensGrow", "HandsOverAtRelease",
		"InspectRemembersToken", "MinTokenLiftsToken", "TokensGrowAcrossEngines", "TokensGrowAcrossModes",
		"TokensGrowOverHandOver", "TokensGrowOverRelease",
		"TokensLeaveRoom",
	}},
	{fault: "release hands over to nobody", want: []string{
		"DowngradeDoesNotPassExclusive", "DowngradeHandsOver", "HandedOverLeaseEndsWithPlace",
		"HandedOverLeaseIsLengthened", "HandsOverAtRelease", "HandsOverToSharedTogether",
		"OnceIsGrantedWithoutRecord", "PlaceKeepsHolder", "QueueGivesEachAPlace",
		"QueueServesExclusiveAfterReaders", "RecordBindsOnlyOnce", "RefreshAnswersEachInOrder",
		"RefreshLeavesHandedOverLease", "SemaphoreServesInOrder", "SemaphoreServesLargeRequest",
		"TokensGrowOverHandOver", "WatchKeepsGrant", "WatchKeepsLatestNotice", "WatchMissesNoGrant", "WatchStops",
		"WatchTellsAllReaders", "WatchTellsGrant", "WatchTellsGrantAcrossEngines", "WatchTellsWhoAskedLast",
		"SinceBeginsWithHandOver",
		"TokensLeaveRoom",
	}},
	{fault: "release of a lost lease is not an error", want: []string{
		"BreakEndsLease", "CancelStopsLateAcquire", "CompleteStoresRecordAndEndsLease", "HandsOverAtRelease",
		"KeepForNeedsLease", "QueueComparesWholeID", "ReleaseComparesWholeID", "ReleaseOfStaleLeavesSuccessor",
		"ReleaseOfUnknownIsLost", "ReleaseTwiceIsLost",
	}},
	{fault: "release of an extended lease does nothing", want: []string{
		"DowngradeLetsSharedIn", "AcquireAllTakesAll", "ReleaseFreesAtOnce", "SharesStoreAcrossEngines",
	}},
	{fault: "second Downgrade fails", want: []string{"DowngradeTwiceIsOnce"}},
	{fault: "second Downgrade releases", want: []string{"DowngradeTwiceIsOnce"}},
	{fault: "tombstone for half the time", want: []string{"CancelIsRemembered"}},
	{fault: "tombstone only if nothing was found", want: []string{"CancelEndsLease", "KeepForObeysCancel"}},
	{fault: "tombstone only if there was a lease", want: []string{
		"CancelIsRemembered", "CancelStopsLateAcquire", "AcquireAllObeysCancel", "ReleaseLeavesQueue",
	}},
}
