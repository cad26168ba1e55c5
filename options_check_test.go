package holdfast

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/self"
)

// TestCheck checks that options are found wrong before there is a client.
func TestCheck(t *testing.T) {
	for name, o := range map[string]*AcquireOptions{
		"TTL":     {TTL: time.Millisecond},
		"MaxWait": {MaxWait: -1},
		"reason":  {Reason: "a\nb"},
		"long":    {Reason: strings.Repeat("a", 4097)},
		"label":   {Labels: map[string]string{"key": "a\xff"}},
	} {
		if err := o.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&AcquireOptions{TTL: time.Second, Reason: "why", Labels: map[string]string{"key": "value"}}).Check(); err != nil {
		t.Error(err)
	}
	for name, o := range map[string]*OnceOptions{
		"Retention":   {Retention: time.Millisecond},
		"MaxResult":   {MaxResult: MaxOnceResult + 1},
		"Fingerprint": {Fingerprint: strings.Repeat("a", 257)},
		"text":        {Fingerprint: "a\tb"},
		"Await":       {Await: -1},
	} {
		if err := o.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("once: %s: %v", name, err)
		}
	}
	if err := (&OnceOptions{Fingerprint: "a hash"}).Check(); err != nil {
		t.Error(err)
	}
}

// TestLocalHolder: who holds a lock is told unless the caller says it.
func TestLocalHolder(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	here := self.Holder(Holder{})
	if !strings.HasPrefix(here.Program, "holdfast.test") || here.User == "" || here.Host != host || here.PID != os.Getpid() {
		t.Errorf("this process is %+v", here)
	}
	run := here
	run.Program = "deploy.sh"
	for name, test := range map[string]struct{ given, want Holder }{
		"nothing":     {Holder{}, here},
		"the program": {Holder{Program: "deploy.sh"}, run},
		"a person":    {Holder{Person: true}, Holder{Host: host, User: here.User, Person: true}},
		"a label":     {Holder{Label: "worker 7"}, Holder{Label: "worker 7"}},
		"a host":      {Holder{Host: "web-3"}, Holder{Host: "web-3"}},
	} {
		o := (&Options{Holder: test.given}).withDefaults()
		if got, want := o.Holder, test.want; got.String() != want.String() || got.Host != want.Host || got.PID != want.PID || got.User != want.User || got.Program != want.Program {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if who := here.String(); who != here.User+"@"+host+" (pid "+strconv.Itoa(os.Getpid())+", "+here.Program+")" {
		t.Errorf("it is told as %q", who)
	}
	if driver.CheckHolder(here) != nil {
		t.Error("it cannot be told")
	}
}
