package enginetest_test

var breakMutants = []mutant{
	{fault: "Break always ends older leases", want: []string{
		"BreakByTokenLeavesOthers", "BreakOfStaleLeavesSuccessor",
	}},
	{fault: "Break answers the other way round", want: []string{
		"BreakAnswersWithRecord", "BreakByTokenLeavesOthers",
	}},
	{fault: "Break does not say what it ended", want: []string{
		"BreakAnswersWithRecord", "BreakByTokenLeavesOthers", "BreakGivesPermitsBack", "BreakHandsOver",
		"BreakLeavesKeptName", "BreakOfClosedLeavesLease", "BreakOpensKeptName", "BreakTellsHolder",
		"BreakTellsHolderAcrossEngines", "BreakTwiceIsOnce",
	}},
	{fault: "Break does nothing", want: []string{
		"BreakAnswersWithRecord", "BreakByTokenLeavesOthers", "BreakEndsLease", "BreakGivesPermitsBack",
		"BreakHandsOver", "BreakLeavesKeptName", "BreakOfClosedLeavesLease", "BreakOpensKeptName",
		"BreakTellsHolder", "BreakTellsHolderAcrossEngines", "BreakTwiceIsOnce", "BreaksAreBounded",
		"BreaksAreForgotten", "BreaksAreRemembered", "LossesStop", "TokensGrowOverBreak",
	}},
	{fault: "Break drops the holder", want: []string{"BreakAnswersWithRecord"}},
	{fault: "Break drops the mode", want: []string{"BreakGivesPermitsBack"}},
	{fault: "Break drops the queue", want: []string{"BreakHandsOver"}},
	{fault: "Break drops the reason", want: []string{
		"BreakAnswersWithRecord", "BreakTellsHolder", "BreakTellsHolderAcrossEngines", "BreaksAreRemembered",
		"LossesStop",
	}},
	{fault: "Break ends whatever is there", want: []string{
		"BreakByTokenLeavesOthers", "BreakGivesPermitsBack", "BreakOfStaleLeavesSuccessor", "BreakTwiceIsOnce",
	}},
	{fault: "Break forgets the last token", want: []string{
		"BreakHandsOver", "BreakTwiceIsOnce", "TokensGrowOverBreak",
	}},
	{fault: "Break hands over to nobody", want: []string{"BreakHandsOver"}},
	{fault: "Break ignores Older", want: []string{
		"BreakAnswersWithRecord", "BreakByTokenLeavesOthers", "BreakOfClosedLeavesLease",
	}},
	{fault: "break is forgotten after a minute", want: []string{"BreaksAreForgotten"}},
	{fault: "break is never forgotten", want: []string{"BreaksAreForgotten"}},
	{fault: "Break keeps the name closed", want: []string{
		"BreakEndsLease", "BreakGivesPermitsBack", "BreakHandsOver", "BreakOpensKeptName", "BreakTwiceIsOnce",
		"BreaksAreBounded", "BreaksAreRemembered", "TokensGrowOverBreak",
	}},
	{fault: "Break leaves the lease", want: []string{
		"BreakByTokenLeavesOthers", "BreakEndsLease", "BreakGivesPermitsBack", "BreakHandsOver",
		"BreakOpensKeptName", "BreakTwiceIsOnce", "BreaksAreBounded", "BreaksAreRemembered", "TokensGrowOverBreak",
	}},
	{fault: "Break leaves what is kept closed", want: []string{"BreakOfClosedLeavesLease", "BreakOpensKeptName"}},
	{fault: "Break opens what is kept closed", want: []string{"BreakLeavesKeptName"}},
	{fault: "Break tells nobody", want: []string{
		"BreakTellsHolder", "BreakTellsHolderAcrossEngines", "LossesStop",
	}},
	{fault: "Break with Closed ends leases", want: []string{"BreakLeavesKeptName", "BreakOfClosedLeavesLease"}},
	{fault: "Break with Older ends whatever is there", want: []string{
		"BreakByTokenLeavesOthers", "BreakOfStaleLeavesSuccessor", "BreakTwiceIsOnce",
	}},
	{fault: "Breaks are always new", want: []string{"BreaksAreRemembered"}},
	{fault: "Breaks fails if there is no record", want: []string{
		"BreakAnswersWithRecord", "BreakOfStaleLeavesSuccessor", "BreaksAreRemembered",
	}},
	{fault: "every break is remembered", want: []string{"BreaksAreBounded"}},
	{fault: "grant forgets the breaks", want: []string{
		"BreakTwiceIsOnce", "BreaksAreBounded", "BreaksAreRemembered",
	}},
	{fault: "loss has no reason", want: []string{
		"BreakTellsHolder", "BreakTellsHolderAcrossEngines", "LossesStop",
	}},
	{fault: "loss names another lease", want: []string{
		"BreakTellsHolder", "BreakTellsHolderAcrossEngines", "LossesStop",
	}},
	{fault: "loss only says to look", want: []string{
		"BreakTellsHolder", "BreakTellsHolderAcrossEngines", "LossesStop",
	}},
	{fault: "losses never stop", want: []string{"LossesStop"}},
	{fault: "losses stay in the engine", want: []string{"BreakTellsHolderAcrossEngines"}},
	{fault: "only the last break is remembered", want: []string{
		"BreakAnswersWithRecord", "BreakByTokenLeavesOthers", "BreaksAreBounded", "BreaksAreRemembered",
	}},
	{fault: "permits of a broken lease leak", want: []string{"BreakGivesPermitsBack"}},
	{fault: "second Break answers nothing", want: []string{"BreakTwiceIsOnce"}},
}
