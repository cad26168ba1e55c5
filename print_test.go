package holdfast_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

// Leases and clients can be printed while they are in use, and do not give the
// lease ID away.
func TestPrintingGivesNoLeaseID(t *testing.T) {
	c := newClient(t, memlock.New(), nil)
	l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 20 * time.Millisecond}) // renewed meanwhile
	ls, err := c.TryAcquireAll(t.Context(), []string{"b", "c"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	text, lines := slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))
	for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
		out.Reset()
		fmt.Fprintf(&out, "%v %+v %#v %s %v %#v %v %+v %#v", l, l, l, l, ls, ls, c, c, c)
		text.Info("held", "lease", l, "all", ls)
		lines.Info("held", "lease", l, "all", ls)
		for _, lease := range []*holdfast.Lease{l, ls.Lease("b"), ls.Lease("c")} {
			if strings.Contains(out.String(), string(lease.ID())) {
				t.Fatalf("the lease ID is in %s", &out)
			}
		}
	}
	if want := fmt.Sprintf(`exclusive lease of "a", token %d`, l.Token()); !strings.HasPrefix(out.String(), want) {
		t.Errorf("printed %s, want %s", &out, want)
	}
}

// What is an enumeration is a word in JSON.
func TestEnumerationsAreWords(t *testing.T) {
	got, err := json.Marshal([]any{holdfast.Renewed, holdfast.OutageBegan, holdfast.OnceInProgress})
	if want := `["renewed","outage-began","in progress"]`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
