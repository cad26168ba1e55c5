package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/faketest"
	"github.com/holdfast-locks/holdfast/systest/model/lease"
)

// granted is an acquire that was granted, at an instant in milliseconds.
func granted(id string, at int64, token uint64) Op {
	const ms = int64(time.Millisecond)
	return Op{
		Name: "a/b", Kind: lease.Acquire, LeaseID: id, Call: at * ms, Return: at*ms + ms/2,
		Token: token, TTL: 100 * time.Millisecond, Deadline: (at + 100) * ms,
	}
}

func TestHistoryThatIsLegal(t *testing.T) {
	var h History
	h.Note(granted("a", 1, 5))
	h.Note(granted("b", 200, 6))
	r := faketest.New(t)
	if v := h.Check(r, lease.Model{}); !v.Legal() || v.Ops != 2 || v.Grants != 2 || len(r.Texts()) > 0 {
		t.Errorf("%s, %v", v, r.Texts())
	}
}

func TestHistoryThatIsIllegalIsDrawn(t *testing.T) {
	var h History
	h.Note(granted("a", 1, 5))
	h.Note(granted("b", 50, 6))
	r := faketest.New(t)
	if v := h.Check(r, lease.Model{}); v.Legal() || len(v.Illegal) != 1 {
		t.Error(v)
	}
	if len(r.Texts()) != 1 || !strings.Contains(r.Texts()[0], "stuck") || !strings.Contains(r.Texts()[0], "token 6") {
		t.Errorf("it says %q, want the operation that does not fit", r.Texts())
	}
	drawing, err := os.ReadFile(filepath.Join(t.ArtifactDir(), "a-b.html"))
	if err != nil || !strings.Contains(string(drawing), "token 6") {
		t.Errorf("the drawing is %d bytes long, %v", len(drawing), err)
	}
	if (&History{ops: h.ops}).Verdict(lease.Model{Mode: lease.Fenced}, time.Second).Legal() != true {
		t.Error("in the fenced mode it is legal")
	}
}

func TestHistoryThatIsUndecidedFails(t *testing.T) {
	var h History
	h.Note(granted("a", 0, 5))
	for i := range 26 { // 2^26 orders to try, none of them legal
		o := granted("a", 1, 5)
		o.Client, o.Return = i, o.Call+int64(time.Hour)
		h.Note(o)
	}
	h.Note(granted("b", 50, 4))
	v := h.Verdict(lease.Model{}, 50*time.Millisecond)
	if v.Legal() || len(v.Undecided) != 1 || len(v.Illegal) != 0 {
		t.Errorf("illegal %v, undecided %v", v.Illegal, v.Undecided)
	}
}

func TestHistoryOfNothingFails(t *testing.T) {
	r := faketest.New(t)
	if new(History).Check(r, lease.Model{}); len(r.Texts()) != 1 {
		t.Errorf("it says %q, want that nobody was granted anything", r.Texts())
	}
}

func TestDuringNotesAFault(t *testing.T) {
	var h History
	before := Now()
	h.During("n", func() { time.Sleep(time.Millisecond) })
	o := h.Ops()[0]
	if o.Kind != lease.Fault || o.Name != "n" || o.Call < before || o.Return < o.Call+int64(time.Millisecond) {
		t.Errorf("%+v", o)
	}
}

func TestWrites(t *testing.T) {
	for name, c := range map[string]struct {
		log    []Write
		faults int
	}{
		"in order":           {[]Write{{"r", "a", 5, true}, {"r", "a", 5, true}, {"s", "b", 4, true}, {"r", "b", 6, true}, {"r", "a", 5, false}}, 0},
		"down":               {[]Write{{"r", "a", 5, true}, {"r", "b", 4, true}}, 1},
		"equal of another":   {[]Write{{"r", "a", 5, true}, {"r", "b", 5, true}}, 1},
		"equal, refused":     {[]Write{{"r", "a", 5, true}, {"r", "b", 5, false}}, 0},
		"refused for no why": {[]Write{{"r", "a", 5, true}, {"r", "b", 6, false}, {"r", "a", 5, false}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var w Writes
			for _, e := range c.log {
				w.Note(e)
			}
			if _, _, faults := w.Faults(); len(faults) != c.faults {
				t.Errorf("%q, want %d faults", faults, c.faults)
			}
			r := faketest.New(t)
			if w.Check(r); len(r.Texts()) != c.faults {
				t.Errorf("the test is told %q", r.Texts())
			}
		})
	}
	r := faketest.New(t)
	if new(Writes).Check(r); len(r.Texts()) != 1 {
		t.Errorf("of nothing it is told %q", r.Texts())
	}
}

func TestClosed(t *testing.T) {
	const ms = int64(time.Millisecond)
	var h History
	note := func(kind lease.Kind, id string, ret int64, outcome lease.Outcome) {
		h.Note(Op{Name: "n", Kind: kind, LeaseID: id, Return: ret * ms, Outcome: outcome, TTL: 100 * time.Millisecond})
	}
	note(lease.Acquire, "released", 1, lease.Done)
	note(lease.Release, "released", 10, lease.Lost)
	note(lease.Acquire, "forgotten", 1, lease.Done)
	note(lease.Extend, "forgotten", 50, lease.Unknown)
	note(lease.Acquire, "abandoned", 20, lease.Unknown)
	note(lease.Cancel, "abandoned", 90, lease.Done)
	note(lease.Acquire, "hopeless", 20, lease.Unknown)
	note(lease.Cancel, "hopeless", 30, lease.Unknown)
	note(lease.Acquire, "found", 20, lease.Unknown)
	note(lease.Acquire, "found", 30, lease.Done)
	note(lease.Acquire, "again", 20, lease.Unknown)
	note(lease.Cancel, "again", 30, lease.Lost)
	note(lease.Acquire, "again", 40, lease.Done)
	note(lease.Acquire, "refused", 20, lease.Unknown)
	note(lease.Cancel, "refused", 30, lease.Lost)
	note(lease.Acquire, "refused", 40, lease.Cancelled)
	see := func(id string, at int64) Sight { return Sight{Name: "n", LeaseID: id, At: at * ms} }
	for _, c := range []struct {
		sight                       Sight
		stuck, abandoned, strangers int64 // milliseconds; how many
	}{
		{see("released", 9), 0, 0, 0}, {see("released", 12), 2, 0, 0},
		{see("forgotten", 149), 0, 0, 0}, {see("forgotten", 151), 1, 0, 0},
		{see("abandoned", 19), 0, 0, 0}, {see("abandoned", 80), 0, 60, 0}, {see("abandoned", 95), 5, 0, 0},
		{see("hopeless", 269), 0, 249, 0}, {see("hopeless", 271), 1, 0, 0},
		{see("found", 129), 0, 0, 0}, {see("found", 131), 1, 0, 0},
		{see("again", 139), 0, 0, 0}, {see("again", 141), 1, 0, 0},
		{see("refused", 32), 2, 0, 0},
		{see("nobody", 1), 0, 0, 1},
	} {
		stuck, abandoned, strangers := h.Closed([]Sight{c.sight}, 50*time.Millisecond)
		of := func(cs []Closing) int64 {
			if len(cs) == 0 {
				return 0
			}
			return cs[0].For.Milliseconds()
		}
		if of(stuck) != c.stuck || of(abandoned) != c.abandoned || int64(strangers) != c.strangers {
			t.Errorf("%s at %d: stuck %v, abandoned %v, %d strangers", c.sight.LeaseID, c.sight.At/ms, stuck, abandoned, strangers)
		}
	}
}

// TestInstant checks that Instant of a time in the future is exact, or a little early.
func TestInstant(t *testing.T) {
	at := time.Now().Add(time.Second)
	least := Now() + int64(time.Until(at)) // in this order the sum is too early
	got := Instant(at)
	most := int64(time.Until(at))
	most += Now() // and in this order too late
	if got < least-int64(time.Second) || got > most {
		t.Errorf("got %d, want about %d to %d", got, least, most)
	}
}
