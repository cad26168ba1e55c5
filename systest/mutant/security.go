package mutant

// securityMutants are faults of who is let in to a server, what it reads, and what it
// tells.
func securityMutants() []Mutant {
	const (
		server = "httplock/server"
		door   = server + "/internal/door"
		caller = server + "/caller"
		limit  = server + "/internal/limit"
		strict = server + "/internal/strict"
		oidc   = "cmd/holdfast/internal/oidc"
	)
	return []Mutant{
		{
			Name: "reserved-names-are-for-all", File: door + "/door.go",
			Breaks:  "Callers may use the names under which servers keep their secret.",
			Old:     "case Reserved(name):",
			New:     "case false:",
			FoundBy: []Finder{{door, "TestNeed"}, {server, "TestBadRequests"}},
		},
		{
			Name: "reserved-names-are-released", File: server + "/internal/driverdoor/leases.go",
			Breaks:  "Whoever may do work once may end leases of reserved names.",
			Old:     "if v.Shows(caller.Once, name) {",
			New:     "if v.Caller.May(caller.Once, name) {",
			FoundBy: []Finder{{server, "TestBadRequests"}},
		},
		{
			Name: "refusals-are-not-audited", File: door + "/refusal.go",
			Breaks:  "Nobody can see afterwards who was refused what.",
			Old:     "if refusal.Status == http.StatusUnauthorized || refusal.Status == http.StatusForbidden {",
			New:     "if false {",
			FoundBy: []Finder{{door, "TestNeed"}, {server, "TestNothingSecretIsLogged"}},
		},
		{
			Name: "panic-is-logged-whole", File: door + "/answer.go",
			Breaks:  "What a panic is about is in the log, secrets included.",
			Old:     `what := fmt.Sprintf("%T", v)`,
			New:     `what := fmt.Sprint(v)`,
			FoundBy: []Finder{{server, "TestPanic"}},
		},
		{
			Name: "broken-answer-looks-whole", File: door + "/answer.go",
			Breaks:  "An answer that breaks off ends as if it were whole.",
			Old:     "panic(http.ErrAbortHandler) // net/http cuts",
			New:     "_ = http.ErrAbortHandler // net/http cuts",
			FoundBy: []Finder{{door, "TestBegunAnswerIsCut/an_error"}},
		},
		{
			Name: "refusal-waits-for-its-reader", File: door + "/refusal.go",
			Breaks:  "A caller that does not read its refusal keeps the connection for good.",
			Old:     "\tPatience(w)\n",
			New:     "",
			FoundBy: []Finder{{server, "TestUnreadAnswer/a_refusal"}},
			Hang:    true,
		},
		{
			Name: "list-waits-for-its-reader", File: server + "/internal/leasedoor/locks.go",
			Breaks:  "A caller that does not read a long list keeps the connection, and the store's list, for good.",
			Old:     "\t\tdoor.Patience(w)\n",
			New:     "",
			FoundBy: []Finder{{server, "TestUnreadAnswer/a_list"}},
			Hang:    true,
		},
		{
			Name: "body-may-take-for-ever", File: server + "/admit.go",
			Breaks:  "A caller that announces a body and sends none keeps the connection for good.",
			Old:     "door.SetBodyTime(w, time.Now().Add(door.BodyTime))",
			New:     "_ = time.Now",
			FoundBy: []Finder{{server, "TestSlowClients/no_body,_refused"}},
			Hang:    true,
		},
		{
			Name: "header-may-take-for-long", File: server + "/configure.go",
			Breaks:  "A caller that sends no header keeps the connection.",
			Old:     "h.ReadHeaderTimeout = 10 * time.Second",
			New:     "h.ReadHeaderTimeout = time.Hour",
			FoundBy: []Finder{{server, "TestSlowClients/half_a_header"}},
		},
		{
			Name: "web-pages-may-lock", File: server + "/admit.go",
			Breaks:  "Any web page can have a browser lock and break.",
			Old:     "if browsers.Check(r) != nil {",
			New:     "if browsers.Check(r) != nil && false {",
			FoundBy: []Finder{{server, "TestBrowsers"}, {server, "TestBadRequests"}},
		},
		{
			Name: "rebound-name-is-answered", File: server + "/admit.go",
			Breaks:  "A web page whose name leads to the server reads all that there is.",
			Old:     "if s.callers != nil || caller.OverUnix(r) || s.answersTo(r.Host) {",
			New:     "if true || s.answersTo(r.Host) {",
			FoundBy: []Finder{{server, "TestBrowsers"}},
		},
		{
			Name: "any-header-is-read", File: server + "/admit.go",
			Breaks:  "A header may be as large as net/http takes it.",
			Old:     "if headerSize(r.Request) > headerLimit {",
			New:     "if false {",
			FoundBy: []Finder{{server, "TestLargeHeader"}},
		},
		{
			Name: "head-opens-streams", File: server + "/admit.go",
			Breaks:  "HEAD does the work of GET, for an answer that nobody sees.",
			Old:     "r.Method == http.MethodHead || !plainPath",
			New:     "!plainPath",
			FoundBy: []Finder{{server, "TestBadRequests"}},
		},
		{
			Name: "everybody-sees-lease-ids", File: server + "/internal/driverdoor/driverdoor.go",
			Breaks:  "Whoever may read sees the lease IDs of others, and can release their locks.",
			Old:     "if v.Caller.Rights.Has(caller.Admin) {",
			New:     "if v.Caller.Rights.Has(caller.Read) {",
			FoundBy: []Finder{{server, "TestLeaseIDsOfOthers"}},
		},
		{
			Name: "break-logs-an-id", File: server + "/internal/driverdoor/looks.go",
			Breaks:  "The log has the ID of a break, by which it can be repeated.",
			Old:     `slog.String("author", f.Author),`,
			New:     `slog.String("author", string(f.ID)),`,
			FoundBy: []Finder{{server, "TestNothingSecretIsLogged"}},
		},
		{
			Name: "leases-of-engines-do-not-count", File: server + "/internal/driverdoor/leases.go",
			Breaks:  "A caller takes as many leases as it likes through the engines' wire.",
			Old:     "if err := h.Limits.Lease(v.Caller, req.LeaseID, req.TTL); err != nil {",
			New:     "if err := h.Limits.Lease(v.Caller, req.LeaseID, req.TTL); err != nil && false {",
			FoundBy: []Finder{{server, "TestLimitsAreKept"}},
		},
		{
			Name: "refused-leases-count", File: server + "/internal/driverdoor/leases.go",
			Breaks:  "A caller that asks for locks which others have uses up its share.",
			Old:     "v.settle(req, reply.Outcome, err)\n\tif err",
			New:     "if err",
			FoundBy: []Finder{{server, "TestLimitsAreKept"}},
		},
		{
			Name: "negative-permits-are-one", File: server + "/internal/leasedoor/acquire.go",
			Breaks:  "Permits below 0 are taken for 1.",
			Old:     "req.Mode == driver.Semaphore && req.Permits == 0",
			New:     "req.Mode == driver.Semaphore && req.Permits <= 0",
			FoundBy: []Finder{{server, "TestBadRequests"}},
		},
		{
			Name: "text-is-mended", File: strict + "/strict.go",
			Breaks:  "Names that are not UTF-8 are mended, so that several become one.",
			Old:     "if !utf8.Valid(data) {",
			New:     "if false && utf8.Valid(data) {",
			FoundBy: []Finder{{strict, "TestRefused"}},
		},
		{
			Name: "callers-are-read-once", File: caller + "/file.go",
			Breaks:  "A token that was taken out of the file goes on being good.",
			Old:     "if time.Since(f.looked) < lookEvery {",
			New:     "if !f.looked.IsZero() {",
			FoundBy: []Finder{{caller, "TestReload"}},
		},
		{
			Name: "others-may-write-the-callers", File: caller + "/owner_unix.go",
			Breaks:  "A file of callers that others can write is believed.",
			Old:     "case mode&0o022 != 0:",
			New:     "case mode&0o022 != 0 && false:",
			FoundBy: []Finder{{caller, "TestFileOfOthers"}},
		},
		{
			Name: "no-prefix-is-every-name", File: caller + "/entries.go",
			Breaks:  "A caller whose prefixes were forgotten may use every name.",
			Old:     "if len(g.Prefixes) == 0 {",
			New:     "if false {",
			FoundBy: []Finder{{caller, "TestWrongFiles"}, {caller, "TestWrongIssuers"}},
		},
		{
			Name: "missing-claim-fits", File: caller + "/issuer.go",
			Breaks:  "A token without the claim that a rule wants fits the rule.",
			Old:     "!ok || got != want {",
			New:     "ok && got != want {",
			FoundBy: []Finder{{caller, "TestRules"}},
		},
		{
			Name: "rule-for-a-whole-issuer", File: caller + "/issuer.go",
			Breaks:  "A rule without claims is for everybody whom the issuer knows.",
			Old:     "if err == nil && len(r.Claims) == 0 {",
			New:     "if false {",
			FoundBy: []Finder{{caller, "TestWrongIssuers"}},
		},
		{
			Name: "proxied-is-direct", File: caller + "/peer.go",
			Breaks:  "Whoever comes through a proxy on this host counts as somebody on this host.",
			Old:     "if r.Header[name] != nil {",
			New:     "if r.Header[name] != nil && false {",
			FoundBy: []Finder{{caller, "TestIsDirect"}},
		},
		{
			Name: "nobody-has-too-much", File: limit + "/limit.go",
			Breaks:  "A caller may have any number of waiters and streams.",
			Old:     "if *count(a) >= limit {",
			New:     "if *count(a) >= limit && false {",
			FoundBy: []Finder{{limit, "TestWaitersAndStreams"}},
			Hang:    true,
		},
		{
			Name: "old-leases-count", File: limit + "/limit.go", Invariant: "I11",
			Breaks:  "Leases that ran out count for good, and the caller can take no more.",
			Old:     "case !now.Before(ends):",
			New:     "case false:",
			FoundBy: []Finder{{limit, "TestLeases"}, {limit, "TestCallersAreForgotten"}},
		},
		{
			Name: "expired-token-is-good", File: oidc + "/oidc.go",
			Breaks:  "A token of an issuer is good for ever.",
			Old:     "return claims, times.check(time.Now())",
			New:     "_ = times.check\n\treturn claims, nil",
			FoundBy: []Finder{{oidc, "TestVerify"}, {oidc, "TestJobLocks"}},
		},
		{
			Name: "token-for-others-is-good", File: oidc + "/oidc.go",
			Breaks:  "A token that its issuer has made for another service is good here.",
			Old:     "ClientID: v.audience,",
			New:     "SkipClientIDCheck: true,",
			FoundBy: []Finder{{oidc, "TestVerify"}, {oidc, "TestJobLocks"}},
		},
		{
			Name: "shared-secrets-sign", File: oidc + "/oidc.go",
			Breaks:  "An issuer may be said to sign by a shared secret, or by none.",
			Old:     "if !slices.Contains(algorithms, a) {",
			New:     "if !slices.Contains(algorithms, a) && false {",
			FoundBy: []Finder{{oidc, "TestWrongIssuers"}},
		},
		{
			Name: "keys-count-for-ever", File: oidc + "/keys.go",
			Breaks:  "Keys of an issuer count while it is away, though it may have given them up.",
			Old:     "if set == nil || age > KeysLast {",
			New:     "if set == nil {",
			FoundBy: []Finder{{oidc, "TestIssuerIsAway"}},
		},
		{
			Name: "private-keys-verify", File: oidc + "/keys.go",
			Breaks:  "A key that is a secret, and that the issuer shows by mistake, is believed.",
			Old:     "key.Valid() && key.IsPublic() &&",
			New:     "key.Valid() &&",
			FoundBy: []Finder{{oidc, "TestPrivateKeys"}},
		},
	}
}
