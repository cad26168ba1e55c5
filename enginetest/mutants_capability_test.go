package enginetest_test

var capabilityMutants = []mutant{
	{fault: "Extend beyond MaxTTL is served", short: true, want: []string{"MaxTTLBoundsLeases"}},
	{fault: "KeepFor beyond MaxTTL is kept", short: true, want: []string{"MaxTTLBoundsKeepFor"}},
	{fault: "KeepFor beyond MaxTTL is refused", short: true, want: []string{"MaxTTLBoundsKeepFor"}},
	{fault: "TTL beyond MaxTTL is served", short: true, want: []string{"MaxTTLBoundsLeases"}},
}
