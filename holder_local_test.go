package holdfast

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestLocalUser reads files of users as they are, and as they should not be.
func TestLocalUser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "passwd")
	text := "root:x:0:0:root:/root:/bin/sh\n# comment\n\nbroken\ndeploy:x:1000:1000::/home/deploy:/bin/sh\n" +
		"+:::::\nsecond:x:1000:1000:the same number::\nbad\x1bname:x:7:7:::\n:x:8:8:::\nlong:x:10001:1::: \n" + strings.Repeat("x", 1<<20) + "\nlate:x:9:9:::\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int]string{0: "root", 1000: "deploy", 100: "100", 10001: "long", 7: "7", 8: "8", 9: "9", 1: "1", -1: ""} {
		if got := localUser(file, id); got != want {
			t.Errorf("user %d is %q, want %q", id, got, want)
		}
	}
	if got := localUser(file+".not", 1000); got != "1000" {
		t.Errorf("without a file user 1000 is %q", got)
	}
}

// TestLocalHolder: who holds a lock is told unless the caller says it.
func TestLocalHolder(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	user := localUser("/etc/passwd", os.Geteuid())
	self := Holder{Host: host, PID: os.Getpid(), User: user, Program: localProgram()}
	if !strings.HasPrefix(self.Program, "holdfast.test") || user == "" {
		t.Errorf("this process is %+v", self)
	}
	run := self
	run.Program = "deploy.sh"
	for name, test := range map[string]struct{ given, want Holder }{
		"nothing":     {Holder{}, self},
		"the program": {Holder{Program: "deploy.sh"}, run},
		"a person":    {Holder{Person: true}, Holder{Host: host, User: user, Person: true}},
		"a label":     {Holder{Label: "worker 7"}, Holder{Label: "worker 7"}},
		"a host":      {Holder{Host: "web-3"}, Holder{Host: "web-3"}},
	} {
		o := (&Options{Holder: test.given}).withDefaults()
		if got, want := o.Holder, test.want; got.String() != want.String() || got.Host != want.Host || got.PID != want.PID || got.User != want.User || got.Program != want.Program {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if who := self.String(); who != user+"@"+host+" (pid "+strconv.Itoa(os.Getpid())+", "+self.Program+")" {
		t.Errorf("it is told as %q", who)
	}
	if driver.CheckHolder(self) != nil {
		t.Error("it cannot be told")
	}
}
