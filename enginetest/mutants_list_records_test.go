package enginetest_test

var listRecordsMutants = []mutant{
	{fault: "DescribeRecord drops the end", want: []string{"DescribesRecord"}},
	{fault: "DescribeRecord drops the name", want: []string{"DescribesRecord"}},
	{fault: "DescribeRecord finds every name", want: []string{
		"DescribesRecord", "ListsOnlyRecords", "RecordEndsWithRetention",
	}},
	{fault: "DescribeRecord gives the length of what it shows", want: []string{"DescribesRecord"}},
	{fault: "DescribeRecord shows nothing", want: []string{"DescribesRecord"}},
	{fault: "ListRecords does not stop", want: []string{"ListRecordsStopsEarly"}},
	{fault: "ListRecords drops the length", want: []string{
		"ListsEachRecordOnce", "ListsOnlyRecords", "ListsRecordsByPrefix", "RecordEndsWithRetention",
	}},
	{fault: "ListRecords ignores the prefix", want: []string{"ListsRecordsByPrefix"}},
	{fault: "ListRecords leaves out names that are held", want: []string{"ListsOnlyRecords"}},
	{fault: "ListRecords shows names that are held", want: []string{"ListsOnlyRecords"}},
	{fault: "ListRecords stops after 128", want: []string{"ListsEachRecordOnce"}},
	{fault: "ListRecords swallows errors", want: []string{
		"ClosedEngineSaysSo", "EndedContextDoesNothing", "ListRecordsReportsError",
	}},
	{fault: "ListRecords takes ? for any character", want: []string{"ListsRecordsByPrefix"}},
	{fault: "ListRecords yields one twice", want: []string{"ListsEachRecordOnce"}},
}
