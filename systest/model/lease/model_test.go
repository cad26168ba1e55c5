package lease

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Times in these tests are in milliseconds; the TTL is 100 ms.
const (
	ms  = int64(time.Millisecond)
	ttl = 100 * time.Millisecond
)

func op(kind Kind, id string, call, ret int64, outcome Outcome) Op {
	o := Op{Name: "n", Kind: kind, LeaseID: id, Call: call * ms, Return: ret * ms, Outcome: outcome, TTL: ttl}
	if kind == Extend && outcome == Done {
		o.Deadline = o.Call + int64(ttl)
	}
	return o
}

// got is an acquire that was granted.
func got(id string, call, ret int64, token uint64) Op {
	o := op(Acquire, id, call, ret, Done)
	o.Token, o.Deadline = token, o.Call+int64(ttl)
	return o
}

func held(id string, call, ret int64) Op { return op(Acquire, id, call, ret, Held) }
func leftFree(id string, call, ret int64) Op {
	o := held(id, call, ret)
	o.LeftFree = true
	return o
}
func unknown(id string, call, ret int64) Op  { return op(Acquire, id, call, ret, Unknown) }
func extended(id string, call, ret int64) Op { return op(Extend, id, call, ret, Done) }
func noExtend(id string, call, ret int64) Op { return op(Extend, id, call, ret, Lost) }
func released(id string, call, ret int64) Op { return op(Release, id, call, ret, Done) }
func gone(id string, call, ret int64) Op     { return op(Release, id, call, ret, Lost) }
func cancelled(id string, call, ret int64) Op {
	return op(Cancel, id, call, ret, Done)
}
func flushed(call, ret int64) Op { return Op{Kind: Fault, Call: call * ms, Return: ret * ms} }
func seen(id string, call, ret int64, token uint64) Op {
	o := op(Inspect, id, call, ret, Done)
	o.Token = token
	return o
}
func seenFree(call, ret int64) Op { return op(Inspect, "", call, ret, Lost) }

// legal reports whether porcupine finds an order for a history.
func legal(t *testing.T, m Model, ops []Op) bool {
	t.Helper()
	model, histories := m.Porcupine(ops)
	for _, history := range histories {
		switch porcupine.CheckOperationsTimeout(model, history, 10*time.Second) {
		case porcupine.Illegal:
			return false
		case porcupine.Unknown:
			t.Fatal("undecided")
		}
	}
	return true
}

// linger is how long requests may be under way in these tests.
const linger = 50 * time.Millisecond

func TestHistories(t *testing.T) {
	for name, c := range map[string]struct {
		timed, fenced bool // whether it is legal
		ops           []Op
	}{
		"nothing": {true, true, nil},
		"one after the other": {true, true, []Op{
			got("a", 0, 1, 5), held("b", 2, 3), extended("a", 4, 5), released("a", 6, 7), got("b", 8, 9, 6), seen("b", 10, 11, 6),
			released("b", 12, 13), seenFree(14, 15),
		}},
		"left free for others": {true, true, []Op{
			got("a", 0, 1, 5), released("a", 2, 3), leftFree("b", 4, 5), got("c", 6, 7, 6),
		}},
		"refused, and nobody has it": {false, false, []Op{
			got("a", 0, 1, 5), released("a", 2, 3), held("b", 4, 5), got("c", 6, 7, 6),
		}},
		"concurrent requests in any order": {true, true, []Op{
			got("b", 0, 10, 6), held("c", 0, 10), got("a", 0, 10, 5), released("a", 0, 10), released("b", 9, 20),
		}},
		"two names have nothing to do with each other": {true, true, func() []Op {
			other := got("b", 0, 1, 4)
			other.Name = "m"
			return []Op{got("a", 0, 1, 5), other}
		}()},
		"a repeat gets the same token": {true, true, []Op{got("a", 0, 1, 5), got("a", 2, 3, 5), released("a", 4, 5)}},
		"the next after the deadline":  {true, true, []Op{got("a", 0, 1, 5), got("b", 99, 101, 6), noExtend("a", 102, 103), gone("a", 104, 105)}},
		"the next after an extended deadline": {true, true, []Op{
			got("a", 0, 1, 5), extended("a", 50, 51), held("b", 120, 121), got("b", 149, 151, 6),
		}},
		"the deadline passes while the grant is under way": {true, true, []Op{got("a", 0, 1, 5), got("b", 20, 130, 6)}},
		"a repeat after the deadline is new":               {true, true, []Op{got("a", 0, 1, 5), got("a", 150, 151, 6)}},
		"an acquire without an answer, repeated":           {true, true, []Op{unknown("a", 0, 10), held("b", 11, 12), got("a", 13, 14, 5)}},
		"an acquire without an answer, cancelled": {true, true, []Op{
			unknown("a", 0, 10), held("b", 11, 12), cancelled("a", 13, 20), got("b", 14, 21, 7), op(Acquire, "a", 22, 23, Cancelled),
		}},
		"an acquire without an answer takes effect late": {true, true, []Op{unknown("a", 0, 10), got("b", 11, 12, 5), released("b", 13, 14), held("b", 60, 61)}},
		"an acquire that is repeated for longer than its lease": {true, true, []Op{
			unknown("a", 0, 10), held("b", 20, 21), unknown("a", 30, 40), got("b", 135, 136, 6), released("b", 140, 141), got("a", 145, 146, 7),
		}},
		"an acquire without an answer takes no effect":  {true, true, []Op{unknown("a", 0, 10), got("b", 11, 12, 5)}},
		"an extend without an answer":                   {true, true, []Op{got("a", 0, 1, 5), op(Extend, "a", 50, 60, Unknown), got("b", 100, 101, 6)}},
		"a release without an answer, repeated":         {true, true, []Op{got("a", 0, 1, 5), op(Release, "a", 2, 10, Unknown), gone("a", 11, 12), got("b", 13, 14, 6)}},
		"a release without an answer takes no effect":   {true, true, []Op{got("a", 0, 1, 5), op(Release, "a", 2, 10, Unknown), held("b", 11, 12), seen("a", 13, 14, 5)}},
		"a release without an answer takes effect late": {true, true, []Op{got("a", 0, 1, 5), op(Release, "a", 2, 10, Unknown), held("b", 11, 12), got("b", 20, 21, 6)}},
		"what certainly was not carried out":            {true, true, []Op{got("a", 0, 1, 5), op(Release, "a", 2, 3, Failed), extended("a", 4, 5)}},
		"a fault that was noted": {true, true, []Op{
			got("a", 0, 1, 5), flushed(2, 3), got("b", 4, 5, 6), noExtend("a", 6, 7),
		}},
		"a repeat after a fault is new": {true, true, []Op{got("a", 0, 1, 5), flushed(2, 3), got("a", 4, 5, 6)}},
		"an acquire that was sent before a fault and after it": {true, true, []Op{
			got("a", 0, 1, 5), released("a", 2, 3), held("b", 6, 7), flushed(8, 9), held("x", 4, 20), got("c", 10, 11, 6),
		}},
		"the same without a fault in between": {false, false, []Op{
			got("a", 0, 1, 5), released("a", 2, 3), held("b", 6, 7), flushed(22, 23), held("x", 4, 20), got("c", 24, 25, 6),
		}},
		"refused before it": {false, false, []Op{
			got("a", 0, 1, 5), released("a", 2, 3), held("b", 6, 7), flushed(12, 13), held("x", 10, 20), got("c", 24, 25, 6),
		}},
		"a place that was taken after a fault is a lease when the answer is older": {true, true, []Op{
			got("x", 0, 20, 5), flushed(8, 9), got("b", 10, 11, 6), released("b", 30, 31), released("x", 32, 33), got("c", 34, 35, 8),
		}},
		"the same without a fault": {false, false, []Op{
			got("x", 0, 20, 5), got("b", 10, 11, 6), released("b", 30, 31), released("x", 32, 33), got("c", 34, 35, 8),
		}},
		"a fault forgets what was cancelled": {true, true, []Op{cancelled("a", 0, 1), flushed(2, 3), got("a", 4, 5, 6)}},
		"many unknowns": {true, true, func() (ops []Op) {
			for i := range int64(200) {
				ops = append(ops, unknown(string(rune('A'+i)), 10*i, 10*i+9), held("z", 10*i, 10*i+9))
			}
			return append(ops, got("y", 5000, 5001, 9))
		}()},

		"a stale extend without an answer": {true, true, []Op{
			got("a", 0, 1, 5), got("b", 150, 151, 6), op(Extend, "a", 152, 160, Unknown), extended("b", 161, 162),
		}},
		"a late repeat without an answer makes a lease": {true, true, []Op{
			got("a", 0, 1, 5), got("b", 150, 151, 6), released("b", 152, 153), unknown("a", 154, 155), extended("a", 156, 157),
			released("a", 158, 159),
		}},

		"a lapse without a reason":             {false, true, []Op{got("a", 0, 1, 5), noExtend("a", 2, 3), got("b", 4, 5, 6)}},
		"a grant inside another's deadline":    {false, true, []Op{got("a", 0, 1, 5), got("b", 50, 51, 6)}},
		"inside an extended deadline":          {false, true, []Op{got("a", 0, 1, 5), extended("a", 50, 51), got("b", 120, 121, 6)}},
		"inside a repeat's deadline":           {false, true, []Op{got("a", 0, 1, 5), got("a", 50, 51, 5), got("b", 120, 121, 6)}},
		"free before the deadline":             {false, true, []Op{got("a", 0, 1, 5), seenFree(50, 51)}},
		"a release finds a live lease gone":    {false, true, []Op{got("a", 0, 1, 5), gone("a", 50, 51)}},
		"a release that lets another one hold": {false, true, []Op{got("a", 0, 1, 5), op(Release, "b", 2, 3, Unknown), got("c", 4, 5, 6)}},

		"a grant inside the deadline of one after a fault": {false, true, []Op{
			got("a", 0, 1, 5), flushed(2, 3), got("b", 4, 5, 6), got("c", 6, 7, 7),
		}},

		"two holders who both extend":             {false, false, []Op{got("a", 0, 1, 5), got("b", 2, 3, 6), extended("a", 4, 5), extended("b", 6, 7)}},
		"a token again":                           {false, false, []Op{got("a", 0, 1, 5), released("a", 2, 3), got("b", 4, 5, 5)}},
		"a smaller token":                         {false, false, []Op{got("a", 0, 1, 5), released("a", 2, 3), got("b", 4, 5, 4)}},
		"a smaller token after a fault":           {false, false, []Op{got("a", 0, 1, 5), flushed(2, 3), got("b", 4, 5, 1)}},
		"a stale extend":                          {false, false, []Op{got("a", 0, 1, 5), got("b", 150, 151, 6), extended("a", 152, 153)}},
		"an extend after the release":             {false, false, []Op{got("a", 0, 1, 5), released("a", 2, 3), extended("a", 4, 5)}},
		"an extend of what was lost":              {false, false, []Op{got("a", 0, 1, 5), noExtend("a", 150, 151), extended("a", 152, 153)}},
		"a stale release":                         {false, false, []Op{got("a", 0, 1, 5), got("b", 150, 151, 6), released("a", 152, 153)}},
		"a release twice":                         {false, false, []Op{got("a", 0, 1, 5), released("a", 2, 3), released("a", 4, 5)}},
		"a repeat with another token":             {false, false, []Op{got("a", 0, 1, 5), got("a", 2, 3, 6)}},
		"a repeat that is refused":                {false, false, []Op{got("a", 0, 1, 5), held("a", 2, 3)}},
		"a lost reply took effect twice":          {false, false, []Op{unknown("a", 0, 10), got("a", 11, 12, 5), got("a", 13, 14, 6)}},
		"a released token again":                  {false, false, []Op{got("a", 0, 1, 5), released("a", 2, 3), got("a", 4, 5, 5)}},
		"held by nobody":                          {false, false, []Op{got("a", 0, 1, 5), released("a", 2, 3), held("b", 4, 5)}},
		"held by nobody, from the start":          {false, false, []Op{held("b", 4, 5)}},
		"held long after the unknown":             {false, false, []Op{unknown("a", 0, 10), held("b", 161, 162)}},
		"held after it was cancelled":             {false, false, []Op{unknown("a", 0, 10), cancelled("a", 11, 12), held("b", 13, 14)}},
		"granted after it was cancelled":          {false, false, []Op{unknown("a", 0, 10), cancelled("a", 11, 12), got("a", 13, 14, 5)}},
		"held after an unknown that was released": {false, false, []Op{unknown("a", 0, 10), got("a", 11, 12, 5), released("a", 13, 14), held("b", 20, 21)}},
		"a repeat with another token after a fault before it": {false, false, []Op{
			got("a", 0, 1, 5), flushed(2, 3), got("b", 4, 5, 6), got("b", 6, 7, 7),
		}},
		"extended in doubt and after it was cancelled": {false, false, []Op{
			got("a", 0, 1, 5), unknown("a", 2, 3), extended("a", 4, 5), cancelled("a", 6, 7), extended("a", 8, 9),
		}},
		"extended after it was cancelled": {false, false, []Op{unknown("a", 0, 10), cancelled("a", 11, 12), extended("a", 13, 14)}},
		"refused without being cancelled": {false, false, []Op{
			op(Acquire, "a", 0, 1, Cancelled),
		}},
		"a stranger's token is seen":         {false, false, []Op{got("a", 0, 1, 5), seen("a", 2, 3, 6)}},
		"a lease is seen after its release":  {false, false, []Op{got("a", 0, 1, 5), released("a", 2, 3), seen("a", 4, 5, 5)}},
		"granted in the order of time only":  {false, false, []Op{got("a", 0, 1, 6), released("a", 2, 3), got("b", 4, 9, 5), released("b", 10, 11)}},
		"an unknown release frees no other":  {false, false, []Op{got("a", 0, 1, 5), op(Release, "a", 2, 10, Unknown), got("b", 11, 12, 6), released("a", 13, 14)}},
		"an unknown repeat excuses no other": {false, false, []Op{got("a", 0, 1, 5), unknown("a", 2, 3), got("b", 150, 151, 4)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := legal(t, Model{Timed, linger, 0}, c.ops); got != c.timed {
				t.Errorf("timed: legal is %v, want %v", got, c.timed)
			}
			if got := legal(t, Model{Fenced, linger, 0}, c.ops); got != c.fenced {
				t.Errorf("fenced: legal is %v, want %v", got, c.fenced)
			}
		})
	}
}

// TestInstantsFitTogether checks that a grant cannot take effect after a request that had returned
// before: the times must fit together.
func TestInstantsFitTogether(t *testing.T) {
	ops := []Op{
		got("a", 0, 1, 5),
		got("b", 20, 130, 6), // after 100, when a's deadline has passed
		extended("b", 80, 90),
	}
	if legal(t, Model{Timed, linger, 0}, ops) {
		t.Error("b was granted before 90 and after 100")
	}
	if !legal(t, Model{Fenced, linger, 0}, ops) {
		t.Error("in the fenced mode a may have lapsed")
	}
}

// by makes an operation one of the turn with this token.
func by(token uint64, o Op) Op {
	o.Token = token
	return o
}

// TestTurns checks turns of callers of one client: they follow each other under one lease ID, each
// with a token that the grant reserved.
func TestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		legal bool
		ops   []Op
	}{
		"one after the other": {true, []Op{
			got("a", 0, 1, 5), got("a", 0, 11, 6), by(5, released("a", 9, 10)), by(6, extended("a", 12, 13)), got("a", 2, 15, 7),
			by(6, released("a", 14, 15)), by(7, released("a", 16, 17)), got("b", 18, 19, 9),
		}},
		"one that was skipped": {true, []Op{got("a", 0, 1, 5), by(5, released("a", 9, 10)), got("a", 0, 11, 7), by(7, released("a", 12, 13))}},
		"the next has the lock before the release returns": {true, []Op{
			got("a", 0, 1, 5), got("a", 0, 5, 6), by(5, released("a", 4, 9)), by(6, released("a", 10, 11)), got("b", 12, 13, 9),
		}},
		"refused during a turn": {true, []Op{got("a", 0, 1, 5), by(5, released("a", 2, 3)), got("a", 0, 4, 6), held("b", 5, 6)}},
		"the first caller's request had no answer": {true, []Op{
			unknown("a", 0, 3), held("b", 4, 5), got("a", 2, 6, 5), by(5, released("a", 7, 8)), got("a", 1, 9, 6), by(6, released("a", 10, 11)),
		}},

		"two at a time":            {false, []Op{got("a", 0, 1, 5), got("a", 0, 3, 6), by(5, released("a", 4, 5))}},
		"before the one before":    {false, []Op{got("a", 2, 3, 6), by(6, released("a", 4, 5)), got("a", 6, 7, 5)}},
		"a token again":            {false, []Op{got("a", 0, 1, 5), by(5, released("a", 2, 3)), got("b", 4, 5, 5)}},
		"a token that is reserved": {false, []Op{got("a", 0, 1, 5), by(5, released("a", 2, 3)), got("b", 4, 5, 8)}},
		"after the lease of another": {false, []Op{
			got("a", 0, 1, 5), by(5, released("a", 2, 3)), got("b", 4, 5, 9), released("b", 6, 7), got("a", 8, 9, 6),
		}},
		"extended by the one before": {false, []Op{got("a", 0, 1, 5), by(5, released("a", 2, 3)), got("a", 0, 4, 6), by(5, extended("a", 5, 6))}},
		"released by the one before": {false, []Op{got("a", 0, 1, 5), got("a", 0, 4, 6), by(5, released("a", 2, 3)), by(5, released("a", 5, 6))}},
		"another's grant meanwhile":  {false, []Op{got("a", 0, 1, 5), by(5, released("a", 2, 3)), got("a", 0, 4, 6), got("b", 5, 6, 9)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := legal(t, Model{Timed, linger, 4}, c.ops); got != c.legal {
				t.Errorf("legal is %t, want %t", got, c.legal)
			}
		})
	}
}

// TestTurnsAfterLoss checks that a client may continue to hand on a lease that a fault has ended,
// until it notices. The tokens of these turns are below the next lease's, so the resource refuses
// them.
func TestTurnsAfterLoss(t *testing.T) {
	fault := flushed(2, 3)
	stale := []Op{got("b", 4, 5, 50), by(5, released("a", 6, 7)), got("a", 0, 9, 6), by(6, gone("a", 10, 11))}
	for name, c := range map[string]struct {
		mode  Mode
		legal bool
		ops   []Op
	}{
		"after a fault":               {Fenced, true, append([]Op{got("a", 0, 1, 5), fault}, stale...)},
		"without a fault":             {Fenced, false, append([]Op{got("a", 0, 1, 5)}, stale...)},
		"and no turn follows":         {Fenced, false, []Op{got("a", 0, 1, 5), fault, got("b", 4, 5, 50), by(5, released("a", 6, 7))}},
		"a grant with a lesser token": {Fenced, false, []Op{got("a", 0, 1, 50), fault, got("b", 4, 5, 6)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := legal(t, Model{c.mode, linger, 4}, c.ops); got != c.legal {
				t.Errorf("legal is %t, want %t", got, c.legal)
			}
		})
	}
}
