package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// An endpoint is one of the server's endpoints, with a valid request.
type endpoint struct {
	pattern string
	target  string        // with names in place of the braces; "": as in the pattern
	body    string        // "": no body
	right   caller.Rights // needed by the request; one of several is enough
	about   about
}

// about is the kind of a request.
type about int

const (
	name     about = iota // a lock or key whose name begins with bank/
	nothing               // no name
	stream                // no name, and the reply is a stream
	anybody               // no name, and the caller may be unknown
	streamOf              // names that begin with bank/, and the reply is a stream
)

// What fill puts into the store of the tests. ID is replaced by the lease ID of bank/held, TOKEN by
// its fencing token.
const (
	leaseOf = `"lease_id":"ID"`
	proof   = `"proof":"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"`
	digest  = `"digest":"505221025f9701f8a05cc22cbafeec897598b2924a9d665cbc10f0073d66da20"`
	other   = `"0123456789abcdef0123456789abcdef"`
)

// endpoints are all endpoints of the server.
var endpoints = inQuery([]endpoint{
	{"POST /v1/leases", "", `{"name":"bank/held","ttl_ms":60000,"holder":{"host":"web-3"}}`, caller.Acquire, name},
	{"POST /v1/leases", "", `{"names":["bank/held"],"ttl_ms":60000}`, caller.Acquire, name},
	{"POST /v1/leases/renew", "", `{"name":"bank/held",` + leaseOf + `,"ttl_ms":60000}`, caller.Acquire | caller.Once, name},
	{"POST /v1/leases/check", "", `{"leases":[{"name":"bank/held",` + leaseOf + `}]}`, caller.Acquire | caller.Once, name},
	{"POST /v1/leases/downgrade", "", `{"name":"bank/held",` + leaseOf + `}`, caller.Acquire, name},
	{"POST /v1/leases/release", "", `{"name":"bank/held",` + leaseOf + `}`, caller.Acquire | caller.Once, name},
	{"GET /v1/locks", "/v1/locks?prefix=bank/", "", caller.Read, name},
	{"POST /v1/locks/look", "", `{"names":["bank/held"]}`, caller.Read, name},
	{"GET /v1/stats", "", "", caller.Read, name},
	{"GET /v1/store", "", "", caller.Read, name},
	{"GET /v1/onetime", "", "", caller.Read, name},
	{"GET /v1/locks/{name}", "/v1/locks/bank%2Fheld", "", caller.Read, name},
	{"GET /v1/locks/{name}/history", "/v1/locks/bank%2Fheld/history", "", caller.Read, name},
	{"GET /v1/events", "/v1/events?prefix=bank/", "", caller.Read, streamOf},
	{"POST /v1/locks/{name}/break", "/v1/locks/bank%2Fheld/break", `{"fencing_token":TOKEN,"reason":"stuck"}`, caller.Break, name},
	{"POST /v1/locks/{name}/hold", "/v1/locks/bank%2Fheld/hold", `{"for_ms":60000,"reason":"freeze"}`, caller.Acquire, name},
	{"POST /v1/locks/{name}/hold/release", "/v1/locks/bank%2Fheld/hold/release", `{"fencing_token":TOKEN}`, caller.Acquire | caller.Break, name},
	{"GET /v1/session", "", "", 0, nothing},
	{"POST /v1/session", "", `{"token":"x"}`, 0, nothing},
	{"DELETE /v1/session", "", "", 0, anybody},
	{"GET /v1/once", "/v1/once?prefix=bank/&state=done", "", caller.Once | caller.Read, name},
	{"POST /v1/once/{key}", "/v1/once/bank%2Fdone", `{"ttl_ms":60000,"fingerprint":"x"}`, caller.Once, name},
	{"GET /v1/once/{key}", "/v1/once/bank%2Fdone", "", caller.Once, name},
	{"DELETE /v1/once/{key}", "/v1/once/bank%2Fdone", "", caller.Once, name},
	{"PUT /v1/once/{key}/result", "/v1/once/bank%2Fheld/result", `{` + leaseOf + `,"result":{"a":1},"retention_ms":60000}`, caller.Once, name},
	{"POST /v1/once/{key}/fail", "/v1/once/bank%2Fheld/fail", `{` + leaseOf + `}`, caller.Once, name},
	{"POST /v1/onetime", "", `{"payload":"x","ttl_ms":60000}`, caller.OneTime, nothing},
	{"POST /v1/onetime/redeem", "", `{"token":"x"}`, caller.OneTime, nothing},
	{"POST /v1/onetime/revoke", "", `{"token":"x"}`, caller.OneTime, nothing},

	{"POST /v1/driver/capabilities", "", `{}`, 0, nothing},
	{"POST /v1/driver/acquire", "", `{"name":"bank/held","lease_id":` + other + `,"ttl_ns":60000000000,"holder":{}}`, caller.Acquire, name},
	{"POST /v1/driver/hold", "", `{"name":"bank/held","lease_id":` + other + `,"ttl_ns":60000000000,"holder":{"person":true,"reason":"freeze"}}`, caller.Acquire, name},
	{"POST /v1/driver/acquire-all", "", `{"requests":[{"name":"bank/held","lease_id":` + other + `,"ttl_ns":60000000000,"holder":{}}]}`, caller.Acquire, name},
	{"POST /v1/driver/extend", "", `{"requests":[{"name":"bank/held",` + leaseOf + `,"ttl_ns":60000000000}]}`, caller.Acquire | caller.Once, name},
	{"POST /v1/driver/refresh", "", `{"requests":[{"name":"bank/held","lease_id":` + other + `,"waiter_ttl_ns":60000000000}]}`, caller.Acquire | caller.Once, name},
	{"POST /v1/driver/release", "", `{"name":"bank/held",` + leaseOf + `}`, caller.Acquire | caller.Once, name},
	{"POST /v1/driver/downgrade", "", `{"name":"bank/held",` + leaseOf + `}`, caller.Acquire, name},
	{"POST /v1/driver/inspect", "", `{"name":"bank/held"}`, caller.Read, name},
	{"POST /v1/driver/list", "", `{"prefix":"bank/"}`, caller.Read, name},
	{"POST /v1/driver/list-records", "", `{"prefix":"bank/"}`, caller.Read, name},
	{"POST /v1/driver/break", "", `{"id":` + other + `,"name":"bank/held","token":TOKEN,"author":"ada"}`, caller.Break, name},
	{"POST /v1/driver/breaks", "", `{"name":"bank/held"}`, caller.Read, name},
	{"POST /v1/driver/history", "", `{"name":"bank/held"}`, caller.Read, name},
	{"POST /v1/driver/complete", "", `{"name":"bank/held",` + leaseOf + `,"record":"eA==","retention_ns":60000000000}`, caller.Once, name},
	{"POST /v1/driver/recall", "", `{"name":"bank/done"}`, caller.Once, name},
	{"POST /v1/driver/forget", "", `{"name":"bank/done"}`, caller.Once, name},
	{"POST /v1/driver/describe-record", "", `{"name":"bank/done"}`, caller.Read, name},
	{"POST /v1/driver/deposit", "", `{` + digest + `,"by":` + other + `,"payload":"eA==","ttl_ns":60000000000,"memory_ns":120000000000}`, caller.OneTime, nothing},
	{"POST /v1/driver/redeem", "", `{` + proof + `,"by":` + other + `}`, caller.OneTime, nothing},
	{"POST /v1/driver/peek", "", `{` + proof + `}`, caller.OneTime, nothing},
	{"POST /v1/driver/revoke", "", `{` + digest + `}`, caller.OneTime, nothing},
	{"POST /v1/driver/prune", "", `{"limit":10}`, caller.Admin, nothing},
	{"POST /v1/driver/diagnose", "", `{"ttl_ns":60000000000}`, caller.Admin, nothing},
	{"POST /v1/driver/news", "", `{}`, 0, stream},
	{"POST /v1/driver/events", "", `{}`, caller.Read, stream},
})

var nameInPath = regexp.MustCompile(`bank%2F\w+`)

// inQuery returns endpoints, and each endpoint with a name in its path once more with the name in
// the query.
func inQuery(endpoints []endpoint) []endpoint {
	for _, e := range endpoints {
		if name := nameInPath.FindString(e.target); strings.Contains(e.pattern, "{") {
			e.target = strings.Replace(e.target, name, "~", 1) + "?name=" + name
			endpoints = append(endpoints, e)
		}
	}
	return endpoints
}

func (e endpoint) method() string { return strings.Fields(e.pattern)[0] }

func (e endpoint) path() string {
	if e.target != "" {
		return e.target
	}
	return strings.Fields(e.pattern)[1]
}

// TestEveryEndpointIsTested checks that the table has every pattern in the source.
func TestEveryEndpointIsTested(t *testing.T) {
	found := map[string]bool{}
	for _, c := range []struct{ files, pattern, before string }{
		{"internal/*door/*.go", `"((?:GET|POST|PUT|DELETE|PATCH) /v1/[^"]*)"`, ""},
		{"*.go", `"((?:GET|POST|PUT|DELETE|PATCH) /v1/[^"]*)"`, ""},
		{"../internal/form/form.go", `(?m)^\t[A-Z]\w+ += "([a-z-]+)"$`, "POST /v1/driver/"},
	} {
		files, err := filepath.Glob(c.files)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", c.files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(c.pattern).FindAllSubmatch(text, -1) {
				found[c.before+string(m[1])] = true
			}
		}
	}
	for pattern := range found {
		if !slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.pattern == pattern }) {
			t.Errorf("%s is not in the table of endpoints", pattern)
		}
	}
	for _, e := range endpoints {
		if !found[e.pattern] {
			t.Errorf("%s is in the table, and nowhere else", e.pattern)
		}
	}
}
