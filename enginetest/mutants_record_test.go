package enginetest_test

var recordMutants = []mutant{
	{fault: "Complete checks that nobody else holds", want: []string{
		"CompleteKeepsLease", "CompleteOfLostIsLost", "CompleteOfStaleOverwritesNothing", "CompleteReplacesRecord",
	}},
	{fault: "Complete does not check the lease", want: []string{
		"CompleteKeepsLease", "CompleteOfLostIsLost", "CompleteOfStaleOverwritesNothing", "CompleteReplacesRecord",
		"CompleteTwiceIsOnce", "PlaceIsNoLease",
	}},
	{fault: "Complete does not know Keep", want: []string{"CompleteKeepsLease"}},
	{fault: "Complete with Keep does not check the lease", want: []string{"CompleteKeepsLease"}},
	{fault: "kept record counts as completion", want: []string{"CompleteKeepsLease"}},
	{fault: "Complete ends every lease", want: []string{"CompleteStoresRecordAndEndsLease"}},
	{fault: "Complete forgets the last token", want: []string{
		"CompleteHandsOver", "ForgetLeavesLease", "TokensGrowOverComplete",
	}},
	{fault: "Complete gives up every place", want: []string{"CompleteHandsOver", "CompleteTellsWatches"}},
	{fault: "Complete hands over to nobody", want: []string{"CompleteHandsOver", "CompleteTellsWatches"}},
	{fault: "Complete keeps the places", want: []string{
		"CompleteHandsOver", "CompleteTellsWatches", "WatchKeepsGrant",
	}},
	{fault: "Complete leaves the lease", want: []string{
		"CompleteHandsOver", "CompleteKeepsLease", "CompleteReplacesRecord", "CompleteStoresRecordAndEndsLease",
		"CompleteTellsWatches", "CompleteTwiceIsOnce", "EndedContextDoesNothing", "ForgetDeletesRecord",
		"ForgetLeavesLease", "ListsOnlyRecords", "OnceIsAnsweredRecorded", "RecordBindsOnlyOnce",
		"RecordEndsWithRetention", "TokensGrowOverComplete",
	}},
	{fault: "Complete of a lost lease is not an error", want: []string{
		"CompleteKeepsLease", "CompleteOfLostIsLost", "CompleteOfStaleOverwritesNothing", "PlaceIsNoLease",
	}},
	{fault: "Complete takes a place for a lease", want: []string{"PlaceIsNoLease"}},
	{fault: "empty record is none", want: []string{"DescribesRecord", "RecallReturnsRecordWhole"}},
	{fault: "first record stays", want: []string{"CompleteHandsOver", "CompleteKeepsLease", "CompleteReplacesRecord"}},
	{fault: "Forget always finds a record", want: []string{
		"ForgetDeletesRecord", "RecallOfUnknownFindsNothing", "RecordEndsWithRetention",
	}},
	{fault: "Forget ends the leases", want: []string{"CompleteTwiceIsOnce", "ForgetLeavesLease"}},
	{fault: "Forget forgets the last token", want: []string{"ForgetLeavesLease"}},
	{fault: "Forget keeps the record", want: []string{
		"CompleteTwiceIsOnce", "ForgetDeletesRecord", "ListsOnlyRecords",
	}},
	{fault: "longest retention stays", want: []string{"CompleteReplacesRecord"}},
	{fault: "Recall fails if there is no record", want: []string{
		"CompleteOfLostIsLost", "CompleteOfStaleOverwritesNothing", "CompleteTwiceIsOnce", "ForgetDeletesRecord",
		"OnceIsGrantedWithoutRecord", "PlaceIsNoLease", "RecallOfUnknownFindsNothing", "RecordEndsWithRetention",
	}},
	{fault: "Recall says what is left in seconds", want: []string{"RecordEndsWithRetention"}},
	{fault: "record is cut", want: []string{"RecallReturnsRecordWhole"}},
	{fault: "record is given by reference", want: []string{
		"DescribesRecord", "PayloadIsCopied", "RecordIsCopied",
	}},
	{fault: "record is kept for a minute", want: []string{
		"CompleteReplacesRecord", "CompleteTwiceIsOnce", "DescribesRecord", "RecordEndsWithRetention",
	}},
	{fault: "record is not copied", want: []string{"PayloadIsCopied", "RecordIsCopied"}},
	{fault: "record is text", want: []string{
		"DescribesRecord", "PayloadComesBackWhole", "RecallReturnsRecordWhole",
	}},
	{fault: "second Complete ends whatever is there", want: []string{"CompleteTwiceIsOnce"}},
	{fault: "second Complete is lost", want: []string{"CompleteTwiceIsOnce"}},
	{fault: "second Complete starts the retention anew", want: []string{"CompleteTwiceIsOnce"}},
}
