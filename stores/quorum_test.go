package stores

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestQuorumMembers checks that each member gets the user, the database and the parameters.
func TestQuorumMembers(t *testing.T) {
	urls, opts, err := parseQuorum("quorum+rediss://u:p%40@h1:1,[::1]:2,h3/4?prefix=a&max_ttl=90s&client_name=c")
	want := []string{
		"rediss://u:p%40@h1:1/4?client_name=c&prefix=a",
		"rediss://u:p%40@[::1]:2/4?client_name=c&prefix=a",
		"rediss://u:p%40@h3/4?client_name=c&prefix=a",
	}
	if err != nil || !slices.Equal(urls, want) || opts.MaxTTL != 90*time.Second || !opts.CloseMembers {
		t.Errorf("%q, %+v, %v", urls, opts, err)
	}
	urls, opts, err = parseQuorum("quorum+redis://a,b,c?max_ttl=1m")
	if err != nil || !slices.Equal(urls, []string{"redis://a", "redis://b", "redis://c"}) || opts.MaxTTL != time.Minute {
		t.Errorf("%q, %+v, %v", urls, opts, err)
	}
}

// TestQuorumKeepsNoHistory checks that a URL that requests history is refused, because a quorum
// keeps none.
func TestQuorumKeepsNoHistory(t *testing.T) {
	for query, refused := range map[string]bool{"?history=1": true, "?prefix=a&hist%6fry=1&max_ttl=1m": true, "?history=0": false} {
		_, _, err := parseQuorum("quorum+redis://a,b,c" + query)
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "a quorum keeps none") {
			t.Errorf("%s: %v, want it refused: %t", query, err, refused)
		}
	}
	if _, err := Open(t.Context(), "quorum+redis://a,b,c?history=1"); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
}
