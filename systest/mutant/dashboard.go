package mutant

// dashboardMutants are faults of the handler that has the page.
func dashboardMutants() []Mutant {
	found := func(test string) []Finder { return []Finder{{"dashboard", test}} }
	return []Mutant{
		{
			Name: "page-acts-unasked", File: "dashboard/actions.go",
			Breaks:  "A page without Authorize carries out actions.",
			Old:     `return errors.New("this page is for looking only: the program that it is part of allows no actions")`,
			New:     `return nil`,
			FoundBy: found("TestLookingOnly"),
		},
		{
			Name: "page-acts-on-another-name", File: "dashboard/actions.go",
			Breaks:  "Authorize is asked about another name than the one that the server then acts on.",
			Old:     "if a.Name, err = server.PathName(r, \"name\"); err == nil {",
			New:     "if _, err = server.PathName(r, \"name\"); err == nil {\n\t\ta.Name = r.PathValue(\"name\")",
			FoundBy: found("TestActions"),
		},
		{
			Name: "page-takes-cookies-of-servers", File: "dashboard/dashboard.go",
			Breaks:  "The cookie of a holdfast serve on the same host counts for a page in a program.",
			Old:     `other.Header.Del("Cookie")`,
			New:     `other.Header.Del("X-Cookie")`,
			FoundBy: found("TestBadRequests"),
		},
		{
			Name: "page-lets-leases-through", File: "dashboard/dashboard.go",
			Breaks:  "Whoever may look at the page can take locks, and read the results of do-once work.",
			Old:     `"GET /v1/once", `,
			New:     `"GET /v1/once", "GET /v1/once/{key}", "POST /v1/leases", `,
			FoundBy: found("TestNothingElseIsLetThrough"),
		},
		{
			Name: "page-compressed-for-everybody", File: "dashboard/files.go",
			Breaks:  "A client that does not read gzip is sent it.",
			Old:     "if takesGzip(r.Header.Values(\"Accept-Encoding\")) {",
			New:     "if takesGzip(nil) || true {",
			FoundBy: found("TestEncodings"),
		},
		{
			Name: "page-redirects-to-the-root", File: "dashboard/page.go",
			Breaks:  "A page whose address lacks the slash at its end sends browsers to the root of the host.",
			Old:     `to := "./" + asked[`,
			New:     `to := "/" + asked[`,
			FoundBy: found("TestPrefix"),
		},
	}
}
