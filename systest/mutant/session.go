package mutant

// sessionMutants are faults of how browsers sign in, and of what people hold through a
// server.
func sessionMutants() []Mutant {
	const (
		server = "httplock/server"
		cookie = server + "/session_cookie.go"
		door   = server + "/internal/leasedoor"
		back   = door + "/hold_person_release.go"
	)
	return []Mutant{
		{
			Name: "session-without-end", File: cookie,
			Breaks:  "A session goes on for as long as its token is known.",
			Old:     "time.Now().Before(end), nil",
			New:     "!end.IsZero(), nil",
			FoundBy: []Finder{{server, "TestSessionEnds"}},
		},
		{
			Name: "cookie-of-any-store", File: cookie,
			Breaks:  "Whoever knows the code can seal a cookie: its key is not made of the servers' secret.",
			Old:     "hkdf.Key(sha256.New, secret, nil,",
			New:     "hkdf.Key(sha256.New, secret[:0], nil,",
			FoundBy: []Finder{{server, "TestForgedSessions"}},
		},
		{
			Name: "dead-cookie-stays", File: cookie,
			Breaks:  "The cookie of a session that is over is not cleared.",
			Old:     "\tsetCookie(w, r, \"\")\n\tw.Header()",
			New:     "\tw.Header()",
			FoundBy: []Finder{{server, "TestForgedSessions"}, {server, "TestRevokedToken"}},
		},
		{
			Name: "cookie-before-header", File: cookie,
			Breaks:  "A cookie counts before the token in Authorization.",
			Old:     "if err != nil || r.Header[\"Authorization\"] != nil {",
			New:     "if err != nil {",
			FoundBy: []Finder{{server, "TestHeaderWins"}},
		},
		{
			Name: "cookie-for-other-origins", File: cookie,
			Breaks:  "A page of another port or host of the same site reads with the cookie of ours.",
			Old:     "if browsers.Check(&changing) != nil {",
			New:     "if browsers.Check(r) != nil {",
			FoundBy: []Finder{{server, "TestWhereACookieCounts"}},
		},
		{
			Name: "cookie-changes-without-origin", File: cookie,
			Breaks:  "A cookie alone does for a request that changes something and does not say where it comes from.",
			Old:     "case !saysOrigin(r.Request):",
			New:     "case false:",
			FoundBy: []Finder{{server, "TestWhereACookieCounts"}},
		},
		{
			Name: "cookie-for-scripts", File: cookie,
			Breaks:  "A script of the page can read the cookie.",
			Old:     "HttpOnly: true, ",
			New:     "",
			FoundBy: []Finder{{server, "TestCookie"}},
		},
		{
			Name: "cookie-in-the-clear", File: cookie,
			Breaks:  "A cookie that was set under TLS is sent without it, too.",
			Old:     "Secure: byTLS(r),",
			New:     "Secure: false,",
			FoundBy: []Finder{{server, "TestCookie"}},
		},
		{
			Name: "outage-signs-out", File: server + "/admit.go",
			Breaks:  "Whoever is signed in is signed out when the issuer of the token is away.",
			Old:     "case inSession && !errors.Is(err, caller.ErrUnavailable):",
			New:     "case inSession:",
			FoundBy: []Finder{{server, "TestRevokedToken"}},
		},
		{
			Name: "wrong-tokens-without-end", File: server + "/session_attempts.go",
			Breaks:  "Tokens can be guessed as fast as the server answers.",
			Old:     "a.until[who] = until.Add(attemptEvery)",
			New:     "a.until[who] = until",
			FoundBy: []Finder{{server, "TestSignInAttempts"}},
		},
		{
			Name: "cookie-is-logged", File: server + "/session.go",
			Breaks:  "The log has the cookies of sessions.",
			Old:     "\tr.Audit(\"sign-in\")\n",
			New:     "\tr.Audit(\"sign-in\")\n\ts.house.Log.Info(\"cookie\", \"value\", sealed)\n",
			FoundBy: []Finder{{server, "TestNothingSecretIsLogged"}},
		},
		{
			Name: "hold-of-a-process", File: door + "/hold_person.go",
			Breaks:  "What a person holds looks like a process's, whose end nobody knows.",
			Old:     "\ta.req.Holder.Person = true\n",
			New:     "",
			FoundBy: []Finder{{door, "TestPersonHolds"}},
		},
		{
			Name: "hold-beyond-the-store", File: door + "/hold_person.go",
			Breaks:  "A person is told of the store's bound by an error about TTLs, or holds beyond it.",
			Old:     "longest = min(longest, most)",
			New:     "longest = max(longest, most)",
			FoundBy: []Finder{{door, "TestBadHolds"}},
		},
		{
			Name: "everybody-gives-holds-back", File: back,
			Breaks:  "Whoever may take locks gives back what other people hold.",
			Old:     "case !p.own(h.Holder):",
			New:     "case false:",
			FoundBy: []Finder{{door, "TestWhoGivesBackWhat"}},
		},
		{
			Name: "own-hold-by-name", File: back,
			Breaks:  "A user of some host has the locks of the caller of that name.",
			Old:     " && h.Host == \"\"",
			New:     "",
			FoundBy: []Finder{{door, "TestOnlyPeopleGiveBack"}},
		},
		{
			Name: "hold-release-breaks-processes", File: back,
			Breaks:  "Giving back a person's lock takes away a process's.",
			Old:     "case !h.Holder.Person:",
			New:     "case false:",
			FoundBy: []Finder{{door, "TestOnlyPeopleGiveBack"}},
		},
		{
			Name: "hold-release-is-not-known-again", File: back,
			Breaks:  "Whoever gives a lock back again, because the answer was lost, is told that nobody has it.",
			Old:     "case !found && p.isRepeat(ctx):",
			New:     "case false:",
			FoundBy: []Finder{{door, "TestWhoGivesBackWhat"}},
		},
		{
			Name: "hold-release-by-hidden-id", File: back,
			Breaks:  "Where lease IDs are hidden, what one holds cannot be given back.",
			Old:     "if errors.Is(err, driver.ErrLost) {",
			New:     "if errors.Is(err, driver.ErrClosed) {",
			FoundBy: []Finder{{door, "TestPersonReleasesByToken"}},
		},
	}
}
