package enginetest_test

var vaultMutants = []mutant{
	{fault: "Deposit checks and records in two steps", want: []string{
		"DepositsOnceAcrossEngines", "DepositsOnceUnderContention",
	}},
	{fault: "Deposit compares half the ID", want: []string{"DepositUnderUsedDigestIsRefused"}},
	{fault: "Deposit finds the forgotten token", want: []string{"ForgottenDigestIsFree"}},
	{fault: "Deposit ignores the ID", want: []string{
		"DepositUnderUsedDigestIsRefused", "DepositsOnceAcrossEngines", "DepositsOnceUnderContention",
	}},
	{fault: "Deposit is told by its payload", want: []string{"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused"}},
	{fault: "Deposit needs no vault", bare: true, want: []string{"UnsupportedVaultSaysSo"}},
	{fault: "Deposit replaces a token that is used up", want: []string{"DepositUnderUsedDigestIsRefused"}},
	{fault: "Deposit replaces the token of another", want: []string{
		"DepositUnderUsedDigestIsRefused", "DepositsOnceAcrossEngines", "DepositsOnceUnderContention",
	}},
	{fault: "digests are cut", want: []string{"VaultComparesWholeDigest"}},
	{fault: "each engine has tokens of its own", want: []string{
		"DepositsOnceAcrossEngines", "RedeemAndRevokeAgree", "RedeemsOnceAcrossEngines", "SharesVaultAcrossEngines",
	}},
	{fault: "expired token is handed out", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PruneDeletesForgotten",
		"PruneLeavesWhatIsRemembered", "RevokeLeavesOthers", "TokenIsFreshForItsTTL", "TokenStateComesAlone",
		"TokenStateIsFinal",
	}},
	{fault: "expired token is revoked", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PruneDeletesForgotten",
		"PruneLeavesWhatIsRemembered", "RevokeLeavesOthers", "TokenIsFreshForItsTTL", "TokenStateIsFinal",
	}},
	{fault: "Memory counts from the redeem", want: []string{"TokenIsForgottenAfterMemory"}},
	{fault: "name in use is not a digest", want: []string{"DigestIsNoName"}},
	{fault: "only Prune forgets", want: []string{"ForgottenDigestIsFree", "TokenIsForgottenAfterMemory"}},
	{fault: "only Prune frees a digest", want: []string{"ForgottenDigestIsFree"}},
	{fault: "payload is cut", want: []string{"PayloadComesBackWhole"}},
	{fault: "Peek hides the payload", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "DepositsOnceAcrossEngines",
		"DepositsOnceUnderContention", "DigestIsNoName", "EndedContextDoesNothing", "ForgottenDigestIsFree",
		"PayloadComesBackWhole", "PayloadIsCopied", "PeekChangesNothing", "PeekSaysHowLong", "RedeemHandsOutOnce",
		"RevokeEndsFreshToken", "SharesVaultAcrossEngines", "VaultComparesWholeDigest",
	}},
	{fault: "Peek is granted", want: []string{"TokenStateComesAlone"}},
	{fault: "Peek lengthens", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PeekChangesNothing", "PruneDeletesForgotten",
		"PruneLeavesWhatIsRemembered", "RevokeLeavesOthers", "TokenIsForgottenAfterMemory", "TokenIsFreshForItsTTL",
		"TokenStateComesAlone", "TokenStateIsFinal",
	}},
	{fault: "Peek redeems", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "ForgottenDigestIsFree", "PayloadComesBackWhole",
		"PayloadIsCopied", "PeekChangesNothing", "PeekSaysHowLong", "RedeemHandsOutOnce", "SharesVaultAcrossEngines",
		"TokenIsFreshForItsTTL", "VaultComparesWholeDigest",
	}},
	{fault: "Peek says what is left in seconds", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PeekChangesNothing", "PeekSaysHowLong",
	}},
	{fault: "Peek says what is left of every token", want: []string{"TokenStateComesAlone"}},
	{fault: "Peek tells every payload", want: []string{"TokenStateComesAlone"}},
	{fault: "Redeem compares half the ID", want: []string{"RedeemHandsOutOnce"}},
	{fault: "Redeem deletes the payload", want: []string{
		"PayloadComesBackWhole", "PayloadIsCopied", "PruneLeavesWhatIsRemembered", "RedeemRepeatEndsWithGrace",
		"RedeemRepeatIsGrantedAgain", "RedeemsOnceAcrossEngines", "RedeemsOnceUnderContention", "RevokeLeavesOthers",
		"SharesVaultAcrossEngines",
	}},
	{fault: "Redeem ignores the ID", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "DigestIsNoName", "PruneLeavesWhatIsRemembered",
		"RedeemAndRevokeAgree", "RedeemHandsOutOnce", "RedeemRepeatIsGrantedAgain", "RedeemsOnceAcrossEngines",
		"RedeemsOnceUnderContention", "RevokeLeavesOthers", "SharesVaultAcrossEngines", "TokenStateComesAlone",
		"TokenStateIsFinal",
	}},
	{fault: "Redeem leaves the token fresh", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "DigestIsNoName", "PruneLeavesWhatIsRemembered",
		"RedeemAndRevokeAgree", "RedeemHandsOutOnce", "RedeemRepeatEndsWithGrace", "RedeemRepeatIsGrantedAgain",
		"RedeemsOnceAcrossEngines", "RedeemsOnceUnderContention", "RevokeLeavesOthers", "SharesVaultAcrossEngines",
		"TokenIsForgottenAfterMemory", "TokenStateComesAlone", "TokenStateIsFinal",
	}},
	{fault: "Redeem needs no vault", bare: true, want: []string{"UnsupportedVaultSaysSo"}},
	{fault: "Redeem of an unknown digest is remembered", want: []string{
		"PruneDeletesForgotten", "VaultComparesWholeDigest", "VaultOfUnknownFindsNothing",
	}},
	{fault: "Redeem says Fresh", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "DigestIsNoName", "ForgottenDigestIsFree",
		"PayloadComesBackWhole", "PayloadIsCopied", "PeekChangesNothing", "PruneDeletesForgotten",
		"PruneLeavesWhatIsRemembered", "RedeemHandsOutOnce", "RedeemRepeatEndsWithGrace",
		"RedeemRepeatIsGrantedAgain", "RedeemsOnceAcrossEngines", "RedeemsOnceUnderContention", "RevokeLeavesOthers",
		"SelfPruningDoesNotChange", "SharesVaultAcrossEngines", "TokenIsForgottenAfterMemory", "TokenStateIsFinal",
		"VaultComparesWholeDigest", "VaultOfUnknownFindsNothing",
	}},
	{fault: "Redeem says what is left", want: []string{"TokenStateComesAlone"}},
	{fault: "redeemed token expires", want: []string{
		"PruneLeavesWhatIsRemembered", "RedeemRepeatIsGrantedAgain", "TokenIsForgottenAfterMemory",
		"TokenStateIsFinal",
	}},
	{fault: "redeemed token is revoked", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "DigestIsNoName", "PruneLeavesWhatIsRemembered",
		"RedeemAndRevokeAgree", "RevokeLeavesOthers", "SharesVaultAcrossEngines", "TokenStateIsFinal",
	}},
	{fault: "RedeemGrace is 10 s", want: []string{"RedeemRepeatEndsWithGrace"}},
	{fault: "RedeemGrace never ends", want: []string{"RedeemRepeatEndsWithGrace"}},
	{fault: "refused Deposit changes the payload", want: []string{
		"DepositUnderUsedDigestIsRefused", "DepositsOnceAcrossEngines", "DepositsOnceUnderContention",
	}},
	{fault: "refused Deposit is not an error", want: []string{
		"DepositUnderUsedDigestIsRefused", "DepositsOnceAcrossEngines", "DepositsOnceUnderContention",
	}},
	{fault: "refused Deposit lengthens the token", want: []string{"DepositUnderUsedDigestIsRefused"}},
	{fault: "refused Deposit takes the token over", want: []string{
		"DepositUnderUsedDigestIsRefused", "DepositsOnceAcrossEngines", "DepositsOnceUnderContention",
	}},
	{fault: "refused Redeem takes the token over", want: []string{
		"RedeemRepeatIsGrantedAgain", "RedeemsOnceAcrossEngines", "RedeemsOnceUnderContention",
	}},
	{fault: "refused Redeem tells the payload", want: []string{"RedeemRepeatEndsWithGrace", "TokenStateComesAlone"}},
	{fault: "repeat of Redeem outlives the token", want: []string{"TokenIsForgottenAfterMemory"}},
	{fault: "Revoke deletes the payload of a redeemed token", want: []string{"RevokeLeavesOthers"}},
	{fault: "Revoke deletes the token", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PruneDeletesForgotten",
		"PruneLeavesWhatIsRemembered", "RedeemAndRevokeAgree", "RevokeEndsFreshToken", "RevokeLeavesOthers",
		"SharesVaultAcrossEngines", "TokenIsForgottenAfterMemory", "TokenStateIsFinal",
	}},
	{fault: "Revoke does nothing", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PruneLeavesWhatIsRemembered",
		"RedeemAndRevokeAgree", "RevokeEndsFreshToken", "RevokeLeavesOthers", "SharesVaultAcrossEngines",
		"TokenIsForgottenAfterMemory", "TokenStateComesAlone", "TokenStateIsFinal",
	}},
	{fault: "Revoke needs no vault", bare: true, want: []string{"UnsupportedVaultSaysSo"}},
	{fault: "Revoke of an unknown digest is remembered", want: []string{
		"PruneDeletesForgotten", "VaultComparesWholeDigest", "VaultOfUnknownFindsNothing",
	}},
	{fault: "Revoke says the state after", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "DigestIsNoName", "ForgottenDigestIsFree",
		"PruneDeletesForgotten", "PruneLeavesWhatIsRemembered", "RedeemAndRevokeAgree", "RevokeEndsFreshToken",
		"RevokeLeavesOthers", "SharesVaultAcrossEngines", "TokenIsForgottenAfterMemory", "TokenStateIsFinal",
	}},
	{fault: "Revoke tells the payload", want: []string{"TokenStateComesAlone"}},
	{fault: "revoked token expires", want: []string{"TokenIsForgottenAfterMemory", "TokenStateIsFinal"}},
	{fault: "revoked token is forgotten with its TTL", want: []string{
		"TokenIsForgottenAfterMemory", "TokenStateIsFinal",
	}},
	{fault: "revoked token is handed out", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PruneLeavesWhatIsRemembered",
		"RedeemAndRevokeAgree", "RevokeEndsFreshToken", "RevokeLeavesOthers", "SharesVaultAcrossEngines",
		"TokenStateComesAlone", "TokenStateIsFinal",
	}},
	{fault: "second Deposit is refused", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "DepositsOnceAcrossEngines",
		"DepositsOnceUnderContention", "RedeemRepeatIsGrantedAgain",
	}},
	{fault: "second Deposit makes the token fresh", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused",
	}},
	{fault: "second Deposit of a token that is used up is refused", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "RedeemRepeatIsGrantedAgain",
	}},
	{fault: "second Deposit starts the TTL anew", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused",
	}},
	{fault: "second Redeem is refused", want: []string{
		"PayloadComesBackWhole", "PayloadIsCopied", "PruneLeavesWhatIsRemembered", "RedeemRepeatEndsWithGrace",
		"RedeemRepeatIsGrantedAgain", "RedeemsOnceAcrossEngines", "RedeemsOnceUnderContention", "RevokeLeavesOthers",
		"SharesVaultAcrossEngines",
	}},
	{fault: "second Redeem is refused once the TTL is over", want: []string{
		"PruneLeavesWhatIsRemembered", "RedeemRepeatIsGrantedAgain",
	}},
	{fault: "second Redeem of an empty payload is refused", want: []string{"PayloadComesBackWhole"}},
	{fault: "second Redeem starts RedeemGrace anew", want: []string{"RedeemRepeatEndsWithGrace"}},
	{fault: "token ends a tenth early", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PeekChangesNothing", "PeekSaysHowLong",
		"TokenIsForgottenAfterMemory", "TokenIsFreshForItsTTL",
	}},
	{fault: "token is forgotten with its TTL", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PruneDeletesForgotten",
		"PruneLeavesWhatIsRemembered", "RedeemRepeatIsGrantedAgain", "RevokeLeavesOthers",
		"TokenIsForgottenAfterMemory", "TokenIsFreshForItsTTL", "TokenStateIsFinal",
	}},
	{fault: "token lasts a unit too long", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "ForgottenDigestIsFree", "PeekChangesNothing",
		"PeekSaysHowLong", "PruneDeletesForgotten", "PruneLeavesWhatIsRemembered", "RevokeLeavesOthers",
		"TokenIsForgottenAfterMemory", "TokenIsFreshForItsTTL", "TokenStateComesAlone",
	}},
	{fault: "token never expires", want: []string{
		"DepositTwiceIsOnce", "DepositUnderUsedDigestIsRefused", "PruneDeletesForgotten",
		"PruneLeavesWhatIsRemembered", "RevokeLeavesOthers", "TokenIsForgottenAfterMemory", "TokenIsFreshForItsTTL",
		"TokenStateComesAlone", "TokenStateIsFinal",
	}},
	{fault: "token shows as a lock", want: []string{"DigestIsNoName"}},
	{fault: "unknown digest is an error", want: []string{
		"PruneDeletesForgotten", "TokenIsForgottenAfterMemory", "TokenStateComesAlone", "VaultComparesWholeDigest",
		"VaultOfUnknownFindsNothing",
	}},
	{fault: "vault checks and records in two steps", want: []string{
		"RedeemAndRevokeAgree", "RedeemsOnceAcrossEngines", "RedeemsOnceUnderContention",
	}},
	{fault: "vault ignores an ended context", want: []string{"EndedContextDoesNothing"}},
	{fault: "vault serves on after Close", want: []string{"ClosedEngineSaysSo"}},
}
