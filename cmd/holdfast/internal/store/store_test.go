package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestPublic checks that what is shown and handed on opens the same store and
// has nobody's password.
func TestPublic(t *testing.T) {
	for in, want := range map[string]string{
		"sqlite:///var/lib/locks.db":     "sqlite:///var/lib/locks.db",
		"memory:":                        "memory:",
		"redis://h:1/2?prefix=a%20b":     "redis://h:1/2?prefix=a%20b",
		"redis://:secret@h":              "redis://h",
		"rediss://u:secret@h:1?tls_ca=x": "rediss://h:1?tls_ca=x",
		"redis+cluster://u:secret@h1,h2": "redis+cluster://h1,h2",
		"redis+sentinel://u:secret@h1:1,h2/m?sentinel_user=s&sentinel_password=secret&prefix=p": "redis+sentinel://h1:1,h2/m?prefix=p",
		"redis://u:se@cret@h": "redis://h",
		"valkey://:secret@h":  "valkey://h",
		"valkeys+sentinel://u:secret@h1,h2/m?sentinel_password=secret": "valkeys+sentinel://h1,h2/m",
		"redis+unix://u:secret@/run/redis.sock?db=1":                   "redis+unix:///run/redis.sock?db=1",
		"quorum+valkey://u:secret@h1,h2,h3/2":                          "quorum+valkey://h1,h2,h3/2",
		"quorum+redis://u:secret@h1:1,h2,h3/2?prefix=p&max_ttl=1m":     "quorum+redis://h1:1,h2,h3/2?prefix=p&max_ttl=1m",
	} {
		if got := Public(in); got != want {
			t.Errorf("Public(%q) = %q, want %q", in, got, want)
		}
	}
	for _, malformed := range []string{"quorum+redis://u:p/secret@h,h2,h3", "quorum+redis://u:p?secret@h1,h2"} {
		if got := Public(malformed); got != "quorum+redis:" {
			t.Errorf("Public(%q) = %q, want the scheme only", malformed, got)
		}
	}
	for _, malformed := range []string{"redis://u:%zz@h/%zz", "redis:secret@h", "redis://u:p/secret@h", "redis://u:p?secret@h"} {
		if got := Public(malformed); got != "redis:" {
			t.Errorf("Public(%q) = %q, want the scheme only", malformed, got)
		}
	}
	for _, malformed := range []string{"valkey://u:p/secret@h", "VALKEY://u:p/secret@h", "redis+unix://u:p/secret@/run/redis.sock"} {
		if got := Public(malformed); strings.Contains(got, "secret") {
			t.Errorf("Public(%q) = %q", malformed, got)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for url, want := range map[string]error{
		"":                          driver.ErrInvalid,
		"ftp://h":                   driver.ErrInvalid,
		"redis+sentinel://h":        driver.ErrInvalid,
		"redis://h1,h2":             driver.ErrInvalid,
		"http://h":                  driver.ErrInvalid,
		"quorum+redis://h1,h2":      driver.ErrInvalid,
		"quorum+valkey://h1,h2":     driver.ErrInvalid,
		"valkey://h1,h2":            driver.ErrInvalid,
		"xvalkey://h1":              driver.ErrInvalid,
		"redis+unix://h/a.sock":     driver.ErrInvalid,
		"rediss+unix:///a.sock":     driver.ErrInvalid,
		"quorum+redis+unix:///a,/b": driver.ErrInvalid,
		"redis+cluster://h/1":       driver.ErrInvalid,
		"sqlite://relative":         driver.ErrInvalid,
		"rediss://h?tls_ca=/no/one": driver.ErrInvalid,
	} {
		if _, err := Open(t.Context(), url); !errors.Is(err, want) {
			t.Errorf("Open(%q) = %v, want %v", url, err, want)
		}
	}
}

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
