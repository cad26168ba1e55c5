package enginetest_test

var gatherMutants = []mutant{
	{fault: "AcquireAll answers Held if cancelled", want: []string{"GatherObeysCancel"}},
	{fault: "AcquireAll checks and records in two steps", want: []string{
		"GatherRepeatIsGrantedAgain", "GatherTakesAllOrNoneUnderContention",
	}},
	{fault: "AcquireAll does not say by whom", want: []string{"GatherTakesAllOrNone"}},
	{fault: "AcquireAll drops the holders", want: []string{"GatherTakesAll"}},
	{fault: "AcquireAll gives one token", want: []string{"GatherTakesAll"}},
	{fault: "AcquireAll has one TTL", want: []string{"GatherTakesAll"}},
	{fault: "AcquireAll keeps what it has at a refusal", want: []string{
		"GatherDoesNotBarge", "GatherObeysCancel", "GatherTakesAllOrNone",
	}},
	{fault: "AcquireAll keeps what it has at an error", want: []string{"GatherErrorChangesNothing"}},
	{fault: "AcquireAll keeps what it has of names that differ", want: []string{"GatherRefusesWhole"}},
	{fault: "AcquireAll names the first", want: []string{
		"GatherDoesNotBarge", "GatherObeysCancel", "GatherTakesAllOrNone",
	}},
	{fault: "AcquireAll serves what is not supported", plain: true, want: []string{
		"RefusesReplicasIfUnsupported", "RefusesSemaphoreIfUnsupported", "RefusesSharedIfUnsupported",
	}},
	{fault: "AcquireAll shows the tokens of a refusal", want: []string{
		"GatherDoesNotBarge", "GatherObeysCancel", "GatherTakesAllOrNone",
	}},
	{fault: "AcquireAll sorts the tokens", want: []string{"GatherTakesAll"}},
	{fault: "AcquireAll takes 100", want: []string{"GatherTakesMaxBatch"}},
	{fault: "AcquireAll takes one permit each", want: []string{"GatherTakesAll"}},
}
