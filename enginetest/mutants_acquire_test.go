package enginetest_test

var acquireMutants = []mutant{
	{fault: "AcquireAll barges", want: []string{"AcquireAllDoesNotBarge"}},
	{fault: "AcquireAll ignores cancels", want: []string{"AcquireAllObeysCancel"}},
	{fault: "check and record are two steps", want: []string{
		"AcquireAllTakesAllOrNoneUnderContention", "GrantsOnceAcrossEngines", "GrantsOnceUnderContention",
		"SemaphoreGrantsLimitUnderContention", "WatchMissesNoGrant",
	}},
	{fault: "clean-up ends the lease of a repeat", want: []string{"RepeatElsewhereOutlivesCleanUp", "RepeatOutlivesCleanUp"}},
	{fault: "clean-up ends the lease of a repeat elsewhere", want: []string{"RepeatElsewhereOutlivesCleanUp"}},
	{fault: "every request takes one permit", want: []string{
		"BreakGivesPermitsBack", "InspectReportsQueue", "KeepForOfPermitsKeepsThem", "SemaphoreChecksKindOfQueue",
		"SemaphoreCountsPermits", "SemaphoreGrantsLimitUnderContention", "SemaphorePermitsComeBackOneByOne",
		"SemaphoreServesInOrder", "SemaphoreServesLargeRequest", "RefusalSaysReleased", "SinceCountsFromGrant",
		"SinceKeptByExtend", "SinceKeptByRepeat",
	}},
	{fault: "exclusive beside shared", want: []string{
		"RefreshGivesUpPlace",
		"AcquireAllDoesNotBarge", "BreakByTokenLeavesOthers", "BreakLeavesKeptName",
		"DowngradeDoesNotPassExclusive", "DowngradeHandsOver", "DowngradeLetsSharedIn",
		"HandsOverToSharedTogether", "HandsOverWhenPlaceEnds", "KeepForOfSharedLetsSharedIn", "ModeEndsWithLease",
		"QueueServesExclusiveAfterReaders", "RefusalNamesFirstToEnd", "SharedDoesNotOvertakeExclusive",
		"SharedKeepsExclusiveOut", "SharedLeaseEndsAlone", "RefusalSaysReleased", "SinceBeginsWithHandOver",
		"SinceCountsFromGrant", "SinceKeptByDowngrade", "SinceKeptByExtend", "SinceKeptByRepeat",
	}},
	{fault: "expires a tenth early", want: []string{
		"DowngradeKeepsLease", "AcquireAllTakesAllOrNone", "HandedOverLeaseEndsWithPlace", "InspectReportsLease",
		"LeaseLastsItsTTL", "RefreshSaysWhoAndHowLong", "RefusalNamesFirstToEnd", "RefusalSaysHowLong",
	}},
	{fault: "First is ignored", want: []string{"FirstLeavesLease", "FirstLeavesPlace"}},
	{fault: "First lengthens", want: []string{"FirstLeavesLease"}},
	{fault: "First looks for no place", want: []string{"FirstLeavesPlace"}},
	{fault: "First refreshes the place", want: []string{"FirstLeavesPlace"}},
	{fault: "grant keeps a place", want: []string{"QueuedRequestIsGrantedFreeName"}},
	{fault: "grants over a lease that was extended", want: []string{
		"ExtendLengthens", "RefusesHeldName", "SinceKeptByExtend",
	}},
	{fault: "holder is not copied", want: []string{"HolderIsCopied", "PlaceKeepsHolder"}},
	{fault: "KeepFor closes the name to all", want: []string{
		"KeepForOfPermitsKeepsThem", "KeepForOfSharedLetsSharedIn",
	}},
	{fault: "KeepFor gives permits back", want: []string{
		"KeepForOfPermitsKeepsThem", "RefusalSaysReleased",
	}},
	{fault: "KeepFor is ignored for its own lease ID", want: []string{"KeepForClosesName"}},
	{fault: "KeepFor is ignored for others", want: []string{
		"BreakLeavesKeptName", "BreakOpensKeptName", "CompleteOfLostIsLost", "DowngradeOfLostIsLost",
		"KeepForClosesName", "KeepForHoldsQueue", "KeepForObeysCancel", "KeepForOfPermitsKeepsThem",
		"KeepForOfSharedLetsSharedIn", "RefusalSaysReleased",
	}},
	{fault: "kinds are not compared", want: []string{
		"AcquireAllErrorChangesNothing", "SemaphoreChecksKind", "SemaphoreChecksKindOfQueue",
	}},
	{fault: "latest grant is listed first", want: []string{
		"BreakAnswersWithRecord", "KeepForOfPermitsKeepsThem", "SemaphoreCountsPermits",
		"SharedLeasesAreCompatible",
	}},
	{fault: "lift is forgotten", want: []string{
		"AcquireAllTakesAll", "AcquireAllTokensGrow", "MinTokenLiftsToken", "TokensGrowOverComplete",
		"TokensGrowOverExpiry", "TokensGrowOverHandOver", "TokensGrowOverKeepFor",
		"TokensLeaveRoom",
	}},
	{fault: "limits are not compared", want: []string{"SemaphoreChecksKind", "SemaphoreChecksKindOfQueue"}},
	{fault: "MinToken is bounded where a lease is granted", want: []string{"QueueRefusesMinTokenTooFarAhead"}},
	{fault: "MinToken is ignored", want: []string{"AcquireAllTokensGrow", "MinTokenLiftsToken", "TokensGrowOverHandOver"}},
	{fault: "MinToken is not bounded", want: []string{
		"ErrorsLeaveOutName", "AcquireAllErrorChangesNothing", "MinTokenTooFarAheadIsInvalid",
		"QueueRefusesMinTokenTooFarAhead",
	}},
	{fault: "mode of the first lease stays", want: []string{
		"DowngradeDoesNotPassExclusive", "HandsOverToSharedTogether", "ModeEndsWithLease",
		"QueueServesExclusiveAfterReaders", "TokensGrowAcrossModes", "WatchTellsAllReaders",
	}},
	{fault: "mode out of range is served as exclusive", want: []string{"RefusesModeOutOfRange"}},
	{fault: "one shared lease at a time", want: []string{
		"RefreshGivesUpPlace",
		"BreakAnswersWithRecord", "BreakByTokenLeavesOthers", "BreakLeavesKeptName", "BreakOfClosedLeavesLease",
		"CompleteStoresRecordAndEndsLease", "DowngradeHandsOver", "DowngradeLetsSharedIn",
		"DowngradeTwiceIsOnce", "HandsOverToSharedTogether", "HandsOverWhenPlaceEnds",
		"KeepForOfSharedLetsSharedIn", "ListReportsAsInspect", "ModeEndsWithLease",
		"QueueServesExclusiveAfterReaders", "RefusalNamesFirstToEnd", "SharedKeepsExclusiveOut",
		"SharedLeaseEndsAlone", "SharedLeasesAreCompatible", "TokensGrowAcrossModes", "WatchTellsAllReaders",
	}},
	{fault: "place without asking", want: []string{
		"AcquireAllTakesAllOrNone", "QueueKeepsPlace", "RefusesHeldName", "RefusalSaysQueue",
	}},
	{fault: "queued requests barge", want: []string{
		"RefreshGivesUpPlace",
		"HandsOverWhenPlaceEnds", "QueueServesExclusiveAfterReaders", "SemaphoreServesLargeRequest",
		"SharedDoesNotOvertakeExclusive",
	}},
	{fault: "reader shortens the others", want: []string{"RefusalNamesFirstToEnd", "SharedLeaseEndsAlone"}},
	{fault: "readers overtake writers", want: []string{
		"RefreshGivesUpPlace",
		"DowngradeDoesNotPassExclusive", "AcquireAllDoesNotBarge", "HandsOverWhenPlaceEnds",
		"QueueServesExclusiveAfterReaders", "SharedDoesNotOvertakeExclusive",
	}},
	{fault: "record binds everybody", want: []string{
		"CompleteKeepsLease", "CompleteReplacesRecord", "CompleteTwiceIsOnce", "EndedContextDoesNothing",
		"ForgetDeletesRecord", "ForgetLeavesLease", "ListsOnlyRecords", "OnceIsAnsweredRecorded",
		"RecordBindsOnlyOnce", "TokensGrowOverComplete",
	}},
	{fault: "record ignores Once", want: []string{
		"CompleteHandsOver", "OnceIsAnsweredRecorded", "RecallReturnsRecordWhole",
	}},
	{fault: "record is told only if free", want: []string{"CompleteHandsOver", "OnceIsAnsweredRecorded"}},
	{fault: "Recorded gives a place", want: []string{"CompleteHandsOver", "OnceIsAnsweredRecorded"}},
	{fault: "refusal drops the holder", want: []string{
		"AcquireAllTakesAllOrNone", "RefreshSaysWhoAndHowLong", "RefusalNamesFirstToEnd", "RefusalSaysWho",
	}},
	{fault: "refusal drops the labels", want: []string{
		"AcquireAllTakesAllOrNone", "RefreshSaysWhoAndHowLong", "RefusalSaysWho",
	}},
	{fault: "refusal lengthens the lease in the way", want: []string{"AcquireAllTakesAllOrNone", "RefusesHeldName"}},
	{fault: "refusal names the first lease", want: []string{"RefusalNamesFirstToEnd"}},
	{fault: "refusal names the last to end", want: []string{"RefusalNamesFirstToEnd"}},
	{fault: "refusal says the whole TTL", want: []string{"KeepForHoldsQueue", "RefusalSaysHowLong"}},
	{fault: "refusal says what is left in seconds", want: []string{
		"AcquireAllTakesAllOrNone", "RefreshSaysWhoAndHowLong", "RefusalNamesFirstToEnd", "RefusalSaysHowLong",
	}},
	{fault: "refusal shows the token", want: []string{
		"RefreshAnswersEachInOrder", "RefreshSaysWhoAndHowLong", "RefusalHidesToken",
	}},
	{fault: "repeat changes the token", want: []string{
		"FirstLeavesLease",
		"DowngradeKeepsLease", "AcquireAllRepeatIsGrantedAgain", "HandedOverLeaseIsLengthened", "HandsOverAtRelease",
		"OnceIsGrantedWithoutRecord", "RepeatIsGrantedAgain", "SemaphoreGrantsLimit", "SharedLeasesAreCompatible",
	}},
	{fault: "repeat does not lengthen", want: []string{
		"AcquireAllRepeatIsGrantedAgain", "HandedOverLeaseIsLengthened", "HandsOverAtExpiry", "RepeatLengthens",
	}},
	{fault: "repeat is refused", want: []string{
		"FirstLeavesLease",
		"DowngradeKeepsLease", "DowngradeTwiceIsOnce", "AcquireAllDoesNotBarge", "AcquireAllRepeatIsGrantedAgain",
		"HandedOverLeaseIsLengthened", "HandsOverAtExpiry", "HandsOverAtRelease", "ListsQueuedNames",
		"OnceIsGrantedWithoutRecord", "RepeatIsGrantedAgain", "RepeatLengthens", "RepeatNeverShortens",
		"RepeatElsewhereOutlivesCleanUp", "RepeatOutlivesCleanUp", "SemaphoreChecksKindOfQueue", "SemaphoreGrantsLimit",
		"SharedLeasesAreCompatible", "SinceKeptByRepeat",
	}},
	{fault: "repeat shortens", want: []string{"AcquireAllRepeatIsGrantedAgain", "RepeatNeverShortens"}},
	{fault: "repeat undoes Downgrade", want: []string{"DowngradeTwiceIsOnce"}},
	{fault: "semaphore has one permit too many", want: []string{
		"BreakGivesPermitsBack", "KeepForOfPermitsKeepsThem", "SemaphoreCountsPermits", "SemaphoreGrantsLimit",
		"SemaphoreGrantsLimitUnderContention", "SemaphorePermitsComeBackOneByOne", "SemaphoreServesInOrder",
		"SemaphoreServesLargeRequest",
	}},
	{fault: "shared beside exclusive", want: []string{
		"DowngradeDoesNotPassExclusive", "DowngradeHandsOver", "DowngradeOfLostIsLost", "ExclusiveKeepsSharedOut",
		"HandsOverToSharedTogether", "ModeEndsWithLease", "QueueServesExclusiveAfterReaders",
		"WatchTellsAllReaders", "SinceBeginsWithHandOver",
	}},
	{fault: "strange names are refused", want: []string{
		"KeepsNamesApart", "ListsPrefixLiterally", "ListsRecordsByPrefix", "RecallReturnsRecordWhole",
		"TakesEveryName",
	}},
	{fault: "token is a counter", want: []string{"QueueRefusesMinTokenTooFarAhead", "TokenFollowsClock"}},
	{fault: "token is beyond MaxToken", want: []string{
		"AcquireAllTakesAll", "AcquireAllTokensGrow", "GrantsFreeName", "MinTokenLiftsToken",
		"TokensGrowOverComplete", "TokensGrowOverExpiry", "TokensGrowOverHandOver", "TokensGrowOverKeepFor",
		"SinceIsNotTheTokens",
		"TokensLeaveRoom",
	}},
	{fault: "tokens are all alike", want: []string{
		"BreakByTokenLeavesOthers", "BreakGivesPermitsBack", "BreakHandsOver", "BreakOfStaleLeavesSuccessor",
		"BreakTwiceIsOnce", "CompleteHandsOver", "ForgetLeavesLease", "AcquireAllTokensGrow", "HandsOverAtRelease",
		"HandsOverToSharedTogether", "KeepForHoldsQueue", "MinTokenLiftsToken", "QueueRefusesMinTokenTooFarAhead",
		"RepeatAfterExpiryIsNewGrant", "SemaphoreGrantsLimit", "SharedLeasesAreCompatible", "TokenFollowsClock",
		"TokensGrowAcrossEngines", "TokensGrowAcrossModes", "TokensGrowOverBreak", "TokensGrowOverComplete",
		"TokensGrowOverExpiry", "TokensGrowOverHandOver", "TokensGrowOverKeepFor", "TokensGrowOverRelease",
		"TokensLeaveRoom",
	}},
	{fault: "tokens leave no room", want: []string{"TokensLeaveRoom"}},
	{fault: "unqueued requests barge", want: []string{
		"DowngradeDoesNotPassExclusive", "SemaphoreServesLargeRequest", "SharedDoesNotOvertakeExclusive",
	}},
	{fault: "unsupported mode is served as exclusive", plain: true, want: []string{
		"RefusesSemaphoreIfUnsupported", "RefusesSharedIfUnsupported",
	}},
	{fault: "unsupported Once is ignored", plain: true, want: []string{"RefusesOnceIfUnsupported"}},
	{fault: "unsupported queue is ignored", plain: true, want: []string{"RefusesMethodsIfUnsupported", "RefusesQueueIfUnsupported"}},
	{fault: "unsupported replicas are ignored", want: []string{"RefusesReplicasIfUnsupported"}},
	{fault: "watch begins with the answer", want: []string{"WatchMissesNoGrant"}},
}
