package enginetest_test

var pruneMutants = []mutant{
	{fault: "Prune always has more", want: []string{
		"ForgottenDigestIsFree", "PruneDeletesForgotten", "PruneLeavesWhatIsRemembered", "SelfPruningDoesNotChange",
		"VaultOfUnknownFindsNothing",
	}},
	{fault: "Prune counts payloads", want: []string{"PruneLeavesWhatIsRemembered"}},
	{fault: "Prune deletes expired tokens", want: []string{"PruneDeletesForgotten", "PruneLeavesWhatIsRemembered"}},
	{fault: "Prune deletes fresh payloads", want: []string{
		"ForgottenDigestIsFree", "PruneDeletesForgotten", "PruneLeavesWhatIsRemembered",
	}},
	{fault: "Prune deletes redeemed tokens", want: []string{"PruneLeavesWhatIsRemembered"}},
	{fault: "Prune deletes revoked tokens", want: []string{"PruneLeavesWhatIsRemembered"}},
	{fault: "Prune does not count", want: []string{"PruneDeletesForgotten"}},
	{fault: "Prune does nothing", want: []string{"PruneDeletesForgotten"}},
	{fault: "Prune forgets RedeemGrace", want: []string{"PruneLeavesWhatIsRemembered"}},
	{fault: "Prune forgets RedeemGrace when the TTL is over", want: []string{"PruneLeavesWhatIsRemembered"}},
	{fault: "Prune ignores the limit", want: []string{"PruneDeletesForgotten"}},
	{fault: "Prune leaves redeemed tokens", want: []string{"PruneDeletesForgotten"}},
	{fault: "Prune leaves revoked tokens", want: []string{"PruneDeletesForgotten"}},
	{fault: "Prune needs no vault", bare: true, want: []string{"UnsupportedVaultSaysSo"}},
	{fault: "Prune never has more", want: []string{"PruneDeletesForgotten"}},
	{fault: "SelfPruning changes", want: []string{"SelfPruningDoesNotChange"}},
	{fault: "SelfPruning leaves work to Prune", want: []string{"SelfPruningLeavesNothingToPrune"}},
}
