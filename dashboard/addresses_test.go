package dashboard_test

import (
	"regexp"
	"strings"
	"testing"
)

// These match absolute addresses: with a scheme, or from the root of the host.
var (
	withScheme = regexp.MustCompile(`(?i)(https?://|wss?://|data:[a-z]+[/;,]|blob:)[^\s'"` + "`" + `)<>]*`)
	ofRoot     = regexp.MustCompile(`(src|href|action|from|import|import\(|fetch\(|url\(|EventSource\()\s*=?\s*["'` + "`" + `]?/[^/*]`)
)

// TestAddressesAreRelative checks that no file has an address on another host or outside the page,
// so that the page works under any prefix.
func TestAddressesAreRelative(t *testing.T) {
	for _, name := range files(t) {
		if !loaded(name) {
			continue
		}
		text := string(read(t, name))
		for _, found := range withScheme.FindAllString(text, -1) {
			// Namespaces of elements are not loaded.
			if !strings.HasPrefix(found, "http://www.w3.org/") {
				t.Errorf("%s has an absolute address: %s", name, found)
			}
		}
		if !strings.HasPrefix(name, "vendor/") {
			for _, found := range ofRoot.FindAllString(text, -1) {
				t.Errorf("%s has the address of something beside the page: %s", name, found)
			}
		}
	}
}

// TestNothingInline checks that no file has inline styles or scripts, which the policy forbids.
func TestNothingInline(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<style|\sstyle="|\son[a-z]+="|<script(?:[^>]*)>[^<]|innerHTML|insertAdjacentHTML|document\.write|javascript:|\beval\(|new Function`)
	for _, name := range files(t) {
		if strings.HasPrefix(name, "vendor/") {
			continue
		}
		if found := inline.FindString(string(read(t, name))); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}
