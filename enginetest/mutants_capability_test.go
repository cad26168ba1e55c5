package enginetest_test

var capabilityMutants = []mutant{
	{fault: "AcquireAll needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Break needs no flag", plain: true, want: []string{"RefusesBreakIfUnsupported", "RefusesMethodsIfUnsupported"}},
	{fault: "Breaks needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Complete asks the store first", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Complete needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Deposit needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Downgrade needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Forget needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "List needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Peek needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Prune needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Recall needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Redeem needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Refresh asks the store first", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Refresh needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Revoke needs no flag", plain: true, want: []string{"RefusesMethodsIfUnsupported"}},
	{fault: "Extend beyond MaxTTL is served", short: true, want: []string{"MaxTTLBoundsLeases"}},
	{fault: "KeepFor beyond MaxTTL is kept", short: true, want: []string{"MaxTTLBoundsKeepFor"}},
	{fault: "KeepFor beyond MaxTTL is refused", short: true, want: []string{"MaxTTLBoundsKeepFor"}},
	{fault: "TTL beyond MaxTTL is served", short: true, want: []string{"MaxTTLBoundsLeases"}},
}
