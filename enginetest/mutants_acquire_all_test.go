package enginetest_test

var acquireAllMutants = []mutant{
	{fault: "AcquireAll answers Held if cancelled", want: []string{"AcquireAllObeysCancel"}},
	{fault: "AcquireAll checks and records in two steps", want: []string{
		"AcquireAllRepeatIsGrantedAgain", "AcquireAllTakesAllOrNoneUnderContention",
	}},
	{fault: "AcquireAll does not say by whom", want: []string{"AcquireAllTakesAllOrNone"}},
	{fault: "AcquireAll drops the holders", want: []string{"AcquireAllTakesAll"}},
	{fault: "AcquireAll gives one token", want: []string{"AcquireAllTakesAll"}},
	{fault: "AcquireAll has one TTL", want: []string{"AcquireAllTakesAll"}},
	{fault: "AcquireAll keeps what it has at a refusal", want: []string{
		"AcquireAllDoesNotBarge", "AcquireAllObeysCancel", "AcquireAllTakesAllOrNone",
	}},
	{fault: "AcquireAll keeps what it has at an error", want: []string{"AcquireAllErrorChangesNothing"}},
	{fault: "AcquireAll keeps what it has of names that differ", want: []string{"AcquireAllRefusesWhole"}},
	{fault: "AcquireAll names the first", want: []string{
		"AcquireAllDoesNotBarge", "AcquireAllObeysCancel", "AcquireAllTakesAllOrNone",
	}},
	{fault: "AcquireAll serves what is not supported", bare: true, want: []string{
		"RefusesModeOutOfRange", "RefusesReplicasIfUnsupported", "RefusesSemaphoreIfUnsupported",
		"RefusesSharedIfUnsupported",
	}},
	{fault: "AcquireAll shows the tokens of a refusal", want: []string{
		"AcquireAllDoesNotBarge", "AcquireAllObeysCancel", "AcquireAllTakesAllOrNone",
	}},
	{fault: "AcquireAll sorts the tokens", want: []string{"AcquireAllTakesAll"}},
	{fault: "AcquireAll takes 100", want: []string{"AcquireAllTakesMaxBatch"}},
	{fault: "AcquireAll takes one permit each", want: []string{"AcquireAllTakesAll"}},
}
