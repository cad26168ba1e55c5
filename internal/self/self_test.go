package self

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUser checks user with a file of users that has valid and invalid lines.
func TestUser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "passwd")
	text := "root:x:0:0:root:/root:/bin/sh\n# comment\n\nbroken\ndeploy:x:1000:1000::/home/deploy:/bin/sh\n" +
		"+:::::\nsecond:x:1000:1000:the same number::\nbad\x1bname:x:7:7:::\n:x:8:8:::\nlong:x:10001:1::: \n" + strings.Repeat("x", 1<<20) + "\nlate:x:9:9:::\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int]string{0: "root", 1000: "deploy", 100: "100", 10001: "long", 7: "7", 8: "8", 9: "9", 1: "1", -1: ""} {
		if got := user(file, id); got != want {
			t.Errorf("user %d is %q, want %q", id, got, want)
		}
	}
	if got := user(file+".not", 1000); got != "1000" {
		t.Errorf("without a file user 1000 is %q", got)
	}
}
