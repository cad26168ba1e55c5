package check

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-locks/holdfast/systest/model/lease"
)

// An Op is one request of one client, as History records it.
type Op = lease.Op

// A History has the requests and replies of all clients of a run. The zero History is empty and
// ready for concurrent use.
type History struct {
	mu  sync.Mutex // guards ops
	ops []Op
}

// Note records a finished operation.
func (h *History) Note(o Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}

// During notes a fault that lasts while do runs. If name is empty, the fault concerns all names.
func (h *History) During(name string, do func()) {
	o := Op{Name: name, Kind: lease.Fault, Call: Now()}
	do()
	o.Return = Now()
	h.Note(o)
}

// Ops returns the operations recorded so far.
func (h *History) Ops() []Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ops)
}

// HandedOn returns how many leases were handed on in a cohort: acquires that were granted under a
// lease ID that another caller had.
func (h *History) HandedOn() (n int) {
	first := map[string]int{}
	for _, o := range h.Ops() {
		if o.Kind == lease.Acquire && o.Outcome == lease.Done {
			if client, known := first[o.LeaseID]; !known {
				first[o.LeaseID] = o.Client
			} else if client != o.Client {
				n++
			}
		}
	}
	return n
}

// A Verdict is a model's judgement of a history.
type Verdict struct {
	Ops       int // recorded operations
	Checked   int // operations that had to be put into order
	Unknown   int // without a known outcome
	Grants    int
	Held      int // requests that were refused because the name is held
	HeldKnown int // of Held, those for which a holder must be found
	Names     int
	Took      time.Duration
	Illegal   []string // names with a history that no lock could have
	Undecided []string // names whose history took too long

	model   porcupine.Model
	history map[string][]porcupine.Operation
}

// Legal reports whether every name's history is known to be legal.
func (v Verdict) Legal() bool { return len(v.Illegal) == 0 && len(v.Undecided) == 0 }

func (v Verdict) String() string {
	return fmt.Sprintf("%d illegal histories of %d (%d operations, %d grants, %d outcomes unknown)", len(v.Illegal)+len(v.Undecided), v.Names, v.Ops, v.Grants, v.Unknown)
}

// Verdict looks for an order that the model allows, for at most limit for each name.
func (h *History) Verdict(m lease.Model, limit time.Duration) Verdict {
	ops := h.Ops()
	v := Verdict{Ops: len(ops)}
	for _, o := range ops {
		if o.Outcome == lease.Unknown {
			v.Unknown++
		}
		if o.Kind == lease.Acquire && o.Outcome == lease.Done {
			v.Grants++
		}
		if o.Outcome == lease.Held {
			v.Held++
		}
	}
	began := time.Now()
	v.model, v.history = m.Porcupine(ops)
	v.Names = len(v.history)
	for _, name := range lease.Names(v.history) {
		v.Checked += len(v.history[name])
		for _, o := range v.history[name] {
			if o.Output == lease.Held {
				v.HeldKnown++
			}
		}
		switch porcupine.CheckOperationsTimeout(v.model, v.history[name], limit) {
		case porcupine.Illegal:
			v.Illegal = append(v.Illegal, name)
		case porcupine.Unknown:
			v.Undecided = append(v.Undecided, name)
		}
	}
	v.Took = time.Since(began)
	return v
}

// decideWithin is how long the search may take for each name.
const decideWithin = 30 * time.Second

// Check fails t unless the history is known to be legal. It draws illegal histories into files.
func (h *History) Check(t testing.TB, m lease.Model) Verdict {
	t.Helper()
	v := h.Verdict(m, decideWithin)
	t.Logf("%s mode: %s; %d put into order in %s, with %d of %d refusals", m.Mode, v, v.Checked, v.Took.Round(time.Millisecond), v.HeldKnown, v.Held)
	if v.Grants == 0 {
		t.Error("nobody was granted anything")
	}
	for _, name := range v.Undecided {
		t.Errorf("%s: after %s it is undecided whether the history is legal", name, decideWithin)
	}
	for _, name := range v.Illegal {
		v.show(t, name)
	}
	return v
}

// show fails t and reports the known facts about an illegal history.
func (v Verdict) show(t testing.TB, name string) {
	t.Helper()
	_, info := porcupine.CheckOperationsVerbose(v.model, v.history[name], decideWithin)
	path := filepath.Join(t.ArtifactDir(), strings.ReplaceAll(name, "/", "-")+".html")
	if err := porcupine.VisualizePath(v.model, info, path); err != nil {
		t.Error(err)
	}
	t.Errorf("%s: no lock could have this history; it is drawn in %s (run with -artifacts to keep it)\n%s", name, path, v.excerpt(name, info))
}

// excerpt returns the operations around the point where the search failed.
func (v Verdict) excerpt(name string, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, partial := range info.PartialLinearizationsOperations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	ordered := map[any]bool{}
	for _, o := range longest {
		ordered[opKey(o)] = true
	}
	rest := slices.DeleteFunc(slices.Clone(v.history[name]), func(o porcupine.Operation) bool { return ordered[opKey(o)] })
	slices.SortFunc(rest, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	const each = 8
	var b strings.Builder
	began := v.history[name][0].Call
	line := func(what string, o porcupine.Operation) {
		fmt.Fprintf(&b, "  %s [%s, %s] client %d: %s\n", what, time.Duration(o.Call-began), time.Duration(o.Return-began), o.ClientId, v.model.DescribeOperation(o.Input, o.Output))
	}
	for _, o := range longest[max(0, len(longest)-each):] {
		line("legal", o)
	}
	for _, o := range rest[:min(each, len(rest))] {
		line("stuck", o)
	}
	return b.String()
}

// opKey returns a key that identifies an operation: a client does one thing at a time.
func opKey(o porcupine.Operation) any {
	return [4]any{o.ClientId, o.Call, o.Return, fmt.Sprint(o.Input)}
}
