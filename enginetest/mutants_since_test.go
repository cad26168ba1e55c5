package enginetest_test

var sinceMutants = []mutant{
	{fault: "AcquireAll does not note when", want: []string{"SinceCountsFromGrant"}},
	{fault: "Downgrade begins since anew", want: []string{"SinceKeptByDowngrade"}},
	{fault: "Extend begins since anew", want: []string{"SinceKeptByExtend"}},
	{fault: "Inspect drops since", want: []string{
		"ListReportsAsInspect", "SinceBeginsWithHandOver", "SinceCountsFromGrant", "SinceIsNotTheTokens", "SinceKeptByDowngrade",
		"SinceKeptByExtend", "SinceKeptByRepeat",
	}},
	{fault: "KeepFor begins since anew", want: []string{"RefusalSaysReleased"}},
	{fault: "List drops since", want: []string{"ListReportsAsInspect"}},
	{fault: "Refresh drops the length of the queue", want: []string{"RefusalSaysQueue"}},
	{fault: "hand-over does not note when", want: []string{"SinceBeginsWithHandOver"}},
	{fault: "hand-over keeps since of the place", want: []string{"SinceBeginsWithHandOver"}},
	{fault: "refusal does not count its own place", want: []string{"RefusalSaysQueue"}},
	{fault: "refusal does not say that it was released", want: []string{"RefusalSaysReleased"}},
	{fault: "refusal drops since", want: []string{
		"RefusalSaysReleased", "SinceBeginsWithHandOver", "SinceCountsFromGrant", "SinceIsNotTheTokens", "SinceKeptByDowngrade",
		"SinceKeptByExtend", "SinceKeptByRepeat",
	}},
	{fault: "refusal drops the length of the queue", want: []string{"RefusalSaysQueue"}},
	{fault: "refusal says that all were released", want: []string{"RefusalSaysReleased"}},
	{fault: "repeat begins since anew", want: []string{"SinceKeptByRepeat"}},
	{fault: "since is read from the token", want: []string{"SinceIsNotTheTokens"}},
}
