package mutant

func apiMutants() []Mutant {
	return []Mutant{
		{
			Name: "answer-not-as-described", File: "wire/lease.go",
			Breaks:  "The answer to a renewal has a field that openapi.json does not know.",
			Old:     "type Renewed struct {\n",
			New:     "type Renewed struct {\n\tLeaseID string `json:\"lease_id\"`\n",
			FoundBy: []Finder{{"systest/apitest", "TestExchanges"}},
		},
	}
}
