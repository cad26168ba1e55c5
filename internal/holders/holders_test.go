package holders_test

import (
	"reflect"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func TestRead(t *testing.T) {
	ada := lockinfo.Holder{Host: "ops-1", PID: 7, User: "ada", Labels: map[string]string{"job": "backup"}, Person: true}
	if got := holders.Read(holders.Text(ada)); !reflect.DeepEqual(got, ada) {
		t.Errorf("read %+v, want what was written: %+v", got, ada)
	}
	for _, text := range []string{"", "{", `{"host":"ops-1","pid":"seven"}`} {
		if got := holders.Read(text); !reflect.DeepEqual(got, lockinfo.Holder{}) {
			t.Errorf("read %+v of the malformed %q, want nothing", got, text)
		}
	}
}

// TestTextNeverFails checks that a holder that is not UTF-8 can be written and read.
func TestTextNeverFails(t *testing.T) {
	bad := "a\xffb"
	if text := holders.Text(lockinfo.Holder{Host: bad, Labels: map[string]string{bad: bad}}); holders.Read(text).Host == "" {
		t.Errorf("a holder that is not UTF-8 is written as %q", text)
	}
}
