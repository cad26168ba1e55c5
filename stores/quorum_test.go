package stores

import (
	"slices"
	"testing"
	"time"
)

// TestQuorumMembers: user, database and parameters are for each member.
func TestQuorumMembers(t *testing.T) {
	urls, opts, err := parseQuorum("quorum+rediss://u:p%40@h1:1,[::1]:2,h3/4?prefix=a&max_ttl=90s&client_name=c")
	want := []string{
		"rediss://u:p%40@h1:1/4?prefix=a&client_name=c",
		"rediss://u:p%40@[::1]:2/4?prefix=a&client_name=c",
		"rediss://u:p%40@h3/4?prefix=a&client_name=c",
	}
	if err != nil || !slices.Equal(urls, want) || opts.MaxTTL != 90*time.Second || !opts.CloseMembers {
		t.Errorf("%q, %+v, %v", urls, opts, err)
	}
	urls, opts, err = parseQuorum("quorum+redis://a,b,c?max_ttl=1m")
	if err != nil || !slices.Equal(urls, []string{"redis://a", "redis://b", "redis://c"}) || opts.MaxTTL != time.Minute {
		t.Errorf("%q, %+v, %v", urls, opts, err)
	}
}
