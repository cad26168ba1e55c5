package lease

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Mode is the promise of the lock.
type Mode int

const (
	Timed  Mode = iota // no lease ends before its deadline
	Fenced             // a lease may lapse at any time; tokens strictly grow
)

func (m Mode) String() string { return [...]string{"timed", "fenced"}[m] }

// A Model is a lock with exclusive leases only.
type Model struct {
	Mode Mode
	// Linger is how long after its return a request without a reply may still be under way.
	Linger time.Duration
	// Reserve is how many tokens a grant reserves, for the turns of a cohort under one
	// lease ID. Zero: tokens only have to grow.
	Reserve uint64
}

// Porcupine returns the model and, by name, the histories to check against it.
func (m Model) Porcupine(ops []Op) (porcupine.Model, map[string][]porcupine.Operation) {
	histories := map[string][]porcupine.Operation{}
	for name, own := range byName(ops) {
		for _, s := range m.prepare(own) {
			histories[name] = append(histories[name], porcupine.Operation{
				ClientId: s.Client, Input: s, Call: s.Call, Output: s.Outcome, Return: s.Return,
			})
		}
	}
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(before, input, _ any) (bool, any) {
			after, ok := m.step(before.(state), input.(step))
			return ok, after
		},
		DescribeOperation: func(input, _ any) string { return input.(step).describe() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}, histories
}

// byName splits a history by name. A fault without a name belongs to each.
func byName(ops []Op) map[string][]Op {
	names := map[string][]Op{}
	for _, o := range ops {
		if o.Name != "" {
			names[o.Name] = append(names[o.Name], o)
		}
	}
	for _, o := range ops {
		if o.Name == "" {
			for name := range maps.Clone(names) {
				names[name] = append(names[name], o)
			}
		}
	}
	return names
}

// A state is all that matters of the past requests. One state covers many states of the store: if
// doubtful, or after ends, the owner may be gone already.
type state struct {
	now      int64  // the earliest time that it can be
	token    uint64 // the last token
	base     uint64 // the token of the grant, which tokens of later turns follow
	last     string // the lease of token, ended or not
	owner    string // the lease that was granted last, unless it has certainly ended
	ends     int64  // the time until which its holder trusts it
	doubtful bool   // it may lapse before ends
	tombs    string // lease IDs that were cancelled, each followed by a space
}

func (s state) String() string {
	owner := "nobody"
	if s.owner != "" {
		owner = fmt.Sprintf("%.6s", s.owner)
		if s.doubtful {
			owner += " perhaps"
		}
	}
	return fmt.Sprintf("%s, token %d", owner, s.token)
}

func (s step) describe() string {
	text := s.String()
	if s.doubt {
		text += ", in doubt"
	}
	return text
}

// step returns the state after a step, or false if no lock could give that reply. The time of the
// step is the earliest possible one: each constraint on it is of the form "not before".
func (m Model) step(s state, o step) (state, bool) {
	s.now = max(s.now, o.Call)
	mine := s.owner != "" && s.owner == o.LeaseID && (o.Token == 0 || o.Kind == Acquire || o.Kind == Inspect || o.Token == s.token)
	if o.never || s.now > o.Return {
		return s, false
	}
	if o.doubt {
		s.doubtful = s.doubtful || mine
		return s, true
	}
	switch o.Kind {
	case Fault:
		s.doubtful, s.tombs = s.owner != "", ""
		return s, true
	case Acquire:
		return m.acquire(s, o, mine)
	case Extend:
		if o.Outcome == Lost {
			return m.lapse(s, o, mine)
		}
		s.ends = max(s.ends, o.Deadline)
		return s, mine
	case Release:
		if o.Outcome == Lost {
			return m.lapse(s, o, mine)
		}
		if o.handed && !mine {
			return s, true
		}
		return s.free(), mine
	case Cancel:
		if o.tomb {
			s.tombs += o.LeaseID + " "
		}
		if mine {
			s = s.free()
		}
		return s, true
	case Inspect:
		if o.Outcome == Lost {
			return m.lapse(s, o, s.owner != "")
		}
		return s, mine && s.token == o.Token
	}
	return s, false
}

func (m Model) acquire(s state, o step, mine bool) (state, bool) {
	switch o.Outcome {
	case Held:
		return s, s.owner != "" && !mine || o.LeftFree
	case Cancelled:
		return s, true // prepare has looked for the cancel request
	}
	if strings.Contains(s.tombs, o.LeaseID+" ") {
		return s, false
	}
	if mine && o.Token == s.token {
		s.ends = max(s.ends, o.Deadline)
		return s, true
	}
	if o.turn && s.last != o.LeaseID && o.Token < s.token {
		return s, true // the turn of a lease that a fault has ended: the resource refuses its token
	}
	turn := m.Reserve > 0 && s.last == o.LeaseID && o.Token < s.base+m.Reserve // the turn before has ended
	if o.Token <= s.token || !turn && s.base > 0 && o.Token < s.base+m.Reserve {
		return s, false
	}
	if mine || m.Mode == Timed {
		var ok bool
		if s, ok = s.over(o); !ok {
			return s, false
		}
	}
	s.owner, s.token, s.ends, s.doubtful, s.last = o.LeaseID, o.Token, o.Deadline, false, o.LeaseID
	if !turn {
		s.base = o.Token
	}
	return s, true
}

// over returns the state after the owner's lease has ended by itself, or false
// if it cannot have ended before the step returned.
func (s state) over(o step) (state, bool) {
	if s.owner != "" && !s.doubtful {
		s.now = max(s.now, s.ends)
	}
	return s.free(), s.now <= o.Return
}

// lapse returns the state after a reply that a lease is not live.
func (m Model) lapse(s state, o step, mine bool) (state, bool) {
	switch {
	case !mine:
		return s, true
	case m.Mode == Fenced:
		return s.free(), true
	}
	return s.over(o)
}

func (s state) free() state {
	s.owner, s.ends, s.doubtful = "", 0, false
	return s
}

// Names returns the names of a history in order.
func Names(histories map[string][]porcupine.Operation) []string {
	return slices.SortedFunc(maps.Keys(histories), cmp.Compare[string])
}
