package mutant

// httpLeaseMutants are faults of the server's requests for people.
func httpLeaseMutants() []Mutant {
	const dir = "httplock/server/internal/leasedoor"
	found := func(tests ...string) (all []Finder) {
		for _, test := range tests {
			all = append(all, Finder{dir, test})
		}
		return all
	}
	return []Mutant{
		{
			Name: "repeat-has-another-lease-id", Invariant: "I6", File: dir + "/key.go",
			Breaks:  "A request that comes again with its Idempotency-Key is another acquisition.",
			Old:     "mac := hmac.New(sha256.New, secret)",
			New:     "mac := hmac.New(sha256.New, append(secret[:0:0], driver.NewLeaseID()...))",
			FoundBy: found("TestRepeatAtAnotherServer"),
		},
		{
			Name: "keys-of-all-callers-are-one", Invariant: "I4", File: dir + "/key.go",
			Breaks:  "A caller that sends the key of another gets the other's lease.",
			Old:     "r.Caller.Name, name, key)",
			New:     "\"\", name, key)",
			FoundBy: found("TestCallers"),
		},
		{
			Name: "short-keys-are-taken", Invariant: "I4", File: dir + "/key.go",
			Breaks:  "An Idempotency-Key may be so short that callers draw the same one.",
			Old:     "if len(key) < shortestKey {",
			New:     "if len(key) < shortestKey/16 {",
			FoundBy: found("TestBadRequests"),
		},
		{
			Name: "http-release-leaves-no-tombstone", Invariant: "I5", File: dir + "/release.go",
			Breaks:  "After a release over HTTP a late copy of the request for the lease is granted it again.",
			Old:     "KeepFor: keep, Cancel: true}",
			New:     "KeepFor: keep}",
			FoundBy: found("TestReleaseLeavesATombstone", "TestReleaseByKey"),
		},
		{
			Name: "lost-answer-to-a-release-is-a-loss", Invariant: "I10", File: dir + "/release.go",
			Breaks:  "A release whose first answer the store has lost is answered as if the lease had been lost before.",
			Old:     "if f.Lost() && doubt {",
			New:     "if f.Lost() && !doubt && false {",
			FoundBy: found("TestLostReplies"),
		},
		{
			Name: "minimum-hold-is-forgotten", Invariant: "", File: dir + "/release.go",
			Breaks:  "A name that is to stay closed for some time is free as soon as its lease is released over HTTP.",
			Old:     "return max(0, ms(n)-h.Since), nil",
			New:     "return max(0, ms(n)-h.Since) * 0, nil",
			FoundBy: found("TestMinHold"),
		},
		{
			Name: "place-ends-with-the-answer", Invariant: "I7", File: dir + "/attempt_wait.go",
			Breaks:  "A place is given up when the wait of one request is over, so that a wait in pieces begins anew each time.",
			Old:     "w.watch.Stop()\n\t\tw.door.places.Exit()",
			New:     "w.watch.Stop()\n\t\t_ = w.door.house.Engine.Release(context.Background(), driver.ReleaseRequest{Name: w.req.Name, LeaseID: w.req.LeaseID})\n\t\tw.door.places.Exit()",
			FoundBy: found("TestWaitInPieces", "TestHangingUpKeepsThePlace"),
		},
		{
			Name: "http-places-are-not-refreshed", Invariant: "I7", File: dir + "/attempt_wait.go",
			Breaks:  "The place of a request that waits runs out while it waits.",
			Old:     "defer keeper.Leave(p)",
			New:     "keeper.Leave(p)",
			FoundBy: found("TestHandOver", "TestLostNotices"),
		},
		{
			Name: "longest-wait-is-endless", Invariant: "I5", File: dir + "/acquire.go",
			Breaks:  "A request waits for longer than a tombstone lasts, and is granted a lease that its caller has given up.",
			Old:     "return min(ms(a.want.WaitMS), longestWait)",
			New:     "return min(ms(a.want.WaitMS), 10*longestWait)",
			FoundBy: found("TestLongestPiece"),
		},
		{
			Name: "http-expiry-counts-from-reply", Invariant: "I3", File: dir + "/attempt_wait.go",
			Breaks:  "What a caller is told to be left of its lease counts from the store's answer.",
			Old:     "return grant{reply.Token, sent}, nil",
			New:     "return grant{reply.Token, time.Now()}, nil",
			FoundBy: found("TestExpiryCountsFromBeforeTheRequest"),
		},
		{
			Name: "http-renewal-counts-from-reply", Invariant: "I3", File: dir + "/lease_extend.go",
			Breaks:  "What a caller is told to be left of a lease that it has renewed counts from the store's answer.",
			Old:     "res := result{sent, ask.Effective(ctx, errs[i])}",
			New:     "res := result{sent.Add(time.Since(sent)), ask.Effective(ctx, errs[i])}",
			FoundBy: found("TestExpiryCountsFromBeforeTheRequest"),
		},
		{
			Name: "done-for-nobody", Invariant: "I5", File: dir + "/acquire.go",
			Breaks:  "A request for a lease is carried out after its caller has given it up.",
			Old:     "return a.wait(ctx, a.patience(), nil)",
			New:     "_ = ctx\n\treturn a.wait(a.r.Context(), a.patience(), nil)",
			FoundBy: found("TestNothingIsDoneLater"),
		},
		{
			Name: "check-lengthens", Invariant: "", File: dir + "/lease.go",
			Breaks:  "Whoever looks whether a lease is live keeps it alive.",
			Old:     "func(wire.LeaseRef) time.Duration { return holdfast.MinTTL }",
			New:     "func(wire.LeaseRef) time.Duration { return max(holdfast.MinTTL, defaultTTL) }",
			FoundBy: found("TestRenewAndCheck"),
		},
		{
			Name: "draining-server-ends-leases", Invariant: "I9", File: dir + "/lease.go",
			Breaks:  "A server that is about to stop does not renew the leases that were taken through it.",
			Old:     "\tvar body wire.LeaseRefs\n",
			New:     "\tif err := r.NewWork(); err != nil {\n\t\treturn nil, false, err\n\t}\n\tvar body wire.LeaseRefs\n",
			FoundBy: found("TestDrainEndsWaits"),
		},
		{
			Name: "draining-server-grants", Invariant: "", File: dir + "/attempt.go",
			Breaks:  "A server that is about to stop goes on to take new work.",
			Old:     "if err := a.r.NewWork(); err != nil {",
			New:     "if err := a.r.NewWork(); err != nil && false {",
			FoundBy: found("TestDrainEndsWaits"),
		},
		{
			Name: "slow-part-holds-up-the-rest", Invariant: "I9", File: "httplock/server/internal/door/split.go",
			Breaks:  "A part of the store that hangs holds up the renewals of leases in the others.",
			Old:     "const partLate = 100 * time.Millisecond",
			New:     "const partLate = 100 * time.Second",
			FoundBy: found("TestSlowPart"),
		},
		{
			Name: "holder-poses-as-another", Invariant: "", File: dir + "/acquire.go",
			Breaks:  "Others are not shown who the server has found the holder of a lock to be.",
			Old:     "h := driver.Holder{User: r.Caller.Name, Reason",
			New:     "h := driver.Holder{Reason",
			FoundBy: found("TestCallers"),
		},
		{
			Name: "lists-show-everything", Invariant: "I4", File: dir + "/locks.go",
			Breaks:  "A list shows what the caller may not see, such as where the servers keep their secret.",
			Old:     "(err != nil || r.Shows(right, name(item))) && !yield",
			New:     "(err != nil || r.Shows(right, name(item)) || right != 0) && !yield",
			FoundBy: found("TestReservedNamesAreNotListed"),
		},
		{
			Name: "page-repeats-its-last-item", Invariant: "", File: dir + "/locks.go",
			Breaks:  "Each page of a list begins with the last item of the page before.",
			Old:     "if name(item) <= after {",
			New:     "if name(item) < after {",
			FoundBy: found("TestList"),
		},
		{
			Name: "http-break-hits-the-successor", Invariant: "I4", File: dir + "/break.go",
			Breaks:  "A break over HTTP ends leases whose token is not the one that was seen.",
			Old:     "Older: want.Older,",
			New:     "Older: want.Older || true,",
			FoundBy: found("TestBreak"),
		},
		{
			Name: "http-run-loses-its-fingerprint", Invariant: "", File: dir + "/once.go",
			Breaks:  "The result of do-once work is given to those who use its key for another request.",
			Old:     "h = oncerecord.Header{Token: lease.Token, Fingerprint: lease.Holder.Fingerprint}",
			New:     "h = oncerecord.Header{Token: lease.Token}",
			FoundBy: found("TestOnceInTwoRequests"),
		},
		{
			Name: "http-redeem-ignores-its-key", Invariant: "I6", File: dir + "/onetime.go",
			Breaks:  "Whoever redeems a token, and has no answer, cannot have the payload any more.",
			Old:     "opts.RequestID = string(id)",
			New:     "opts.RequestID = string(id[:0])",
			FoundBy: found("TestOneTime"),
		},
		{
			Name: "waiters-are-never-forgotten", Invariant: "I11", File: dir + "/attempt_wait.go",
			Breaks:  "A request that has waited counts as waiting for ever, until its caller may not wait any more.",
			Old:     "defer leave()\n",
			New:     "_ = leave\n",
			FoundBy: found("TestLimits"),
		},
		{
			Name: "servers-have-a-secret-each", Invariant: "I6", File: "httplock/server/secret.go",
			Breaks:  "Each server of a store makes lease IDs of a secret of its own, so that a repeat at another server is another acquisition.",
			Old:     "return r.Value, err\n",
			New:     "return value, err\n",
			FoundBy: []Finder{{"httplock/server", "TestSecretIsShared"}},
		},
		{
			Name: "unasked-server-does-not-prune", Invariant: "", File: dir + "/onetime.go",
			Breaks:  "Tokens that are over stay in the store until somebody issues or redeems another one.",
			Old:     "err = service.Start()",
			New:     "err = nil",
			FoundBy: found("TestTokensArePruned"),
		},
		{
			Name: "no-secret-no-leases", Invariant: "", File: "httplock/server/secret.go",
			Breaks:  "A server whose store is another server, which keeps no secret for it, grants no lease.",
			Old:     "case errors.Is(err, driver.ErrPermission):",
			New:     "case errors.Is(err, nil):",
			FoundBy: []Finder{{"httplock", "TestServerOfAServer"}, {"httplock/server", "TestSecretIsNotAllowed"}},
		},
		{
			Name: "secret-is-not-put-back", Invariant: "I6", File: "httplock/server/secret.go",
			Breaks:  "After a store has lost the servers' secret, those that begin later make other lease IDs than those that run.",
			Old:     "if value == nil {\n\t\tvalue = drawn()",
			New:     "if value = nil; value == nil {\n\t\tvalue = drawn()",
			FoundBy: []Finder{{"httplock/server", "TestSecretIsShared"}},
		},
		{
			Name: "rights-of-the-name-in-the-path", Invariant: "I4", File: dir + "/locks.go",
			Breaks:  "Whoever puts a name into the query needs no right to it.",
			Old:     "return name, r.Need(right, name)",
			New:     "return name, r.Need(right, r.PathValue(\"name\"))",
			FoundBy: []Finder{{"httplock/server", "TestBadRequests"}},
		},
		{
			Name: "name-in-query-is-not-read", Invariant: "", File: "httplock/server/internal/door/pathname.go",
			Breaks:  "Behind a proxy that decodes paths, every name is a tilde.",
			Old:     "if name != InQuery || ",
			New:     "if name == InQuery || ",
			FoundBy: []Finder{{"httplock/server", "TestNameInQuery"}},
		},
	}
}
