package holdfast

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTTLTable: the arithmetic in docs/choosing.md is that of the code.
func TestTTLTable(t *testing.T) {
	page, err := os.ReadFile("docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d\S*) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 4 {
		t.Fatalf("docs/choosing.md has %d rows of TTLs", len(rows))
	}
	for _, row := range rows {
		ttl, err := time.ParseDuration(row[1])
		if err != nil {
			t.Fatal(err)
		}
		now := zero
		term, _ := newTerm(&AcquireOptions{TTL: ttl}, ttl).granted(now, now, hurriedPause)
		lasts, renewed := now.until(term.deadline), term.renewAt.Sub(now.mono)
		ms := func(d time.Duration) string { return d.Truncate(time.Millisecond).String() }
		want := strings.Join([]string{ms(ttl), ms(lasts), ms(renewed), ms(lasts - renewed), ms(term.expiry.Sub(now.mono))}, " | ")
		if got := strings.Join(row[1:], " | "); got != want {
			t.Errorf("docs/choosing.md says %s, and the code %s", got, want)
		}
	}
}
