package redislock

import (
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// FuzzURL checks that no URL causes a panic, and that no error contains text that Open does not
// understand.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"redis://localhost", "rediss://u:" + secret + "@h:1/2?prefix=x", "redis://u:" + secret + "/@h",
		"redis://[::1]:6379/0", "redis://:" + secret + "@", "redis://h?" + secret, "x",
		"valkeys://h:1/2", "redis+unix://u:" + secret + "@/a/b.sock?db=3", "valkey+unix:///" + secret, "redis+unix://" + secret,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rawURL string) {
		opts, _, err := parseURL(rawURL)
		if err == nil && (len(opts.InitAddress) != 1 || !opts.DisableRetry || opts.SelectDB < 0) {
			t.Errorf("%q gives %+v", rawURL, opts)
		}
		if err != nil {
			wantIs(t, rawURL, err, driver.ErrInvalid)
		}
	})
}

// TestHistoryInURLs checks that every form of a URL accepts history=1.
func TestHistoryInURLs(t *testing.T) {
	for _, store := range []string{"redis://a", "rediss://a", "redis+unix:///a.sock", "redis+sentinel://a,b/master", "redis+cluster://a,b"} {
		for query, want := range map[string]bool{"": false, "?history=0": false, "?history=1": true} {
			if _, set, err := parseURL(store + query); err != nil || set.History != want {
				t.Errorf("%s%s: history %t, %v", store, query, set.History, err)
			}
		}
	}
}
