package lease

import (
	"cmp"
	"math"
	"slices"
)

// A step is an operation as the model sees it.
type step struct {
	Op
	// doubt: the lease may lapse at any time from this step on, because of a request with an
	// unknown outcome.
	doubt bool
	// tomb: a later acquire of the lease ID must be refused.
	tomb bool
	// never: no lock could give that reply.
	never bool
	// turn: an acquire that got a lease from another caller of its client, without a request to
	// the store. handed: a release that handed the lease on. A fault may have ended the lease
	// before.
	turn, handed bool
}

// afterTurns makes each turn of a cohort no earlier than the end of the turn before or, if that
// end is not known, its beginning: the caller has waited for it.
func afterTurns(own []Op) {
	slices.SortStableFunc(own, func(a, b Op) int { return cmp.Compare(a.Token, b.Token) })
	var before uint64
	var began, last int64 // of the turn before, and the latest call of this turn
	for i, o := range own {
		if o.Token == 0 || o.Kind == Inspect {
			continue
		}
		if o.Token != before {
			began, before = last, o.Token
		}
		if o.Kind == Acquire && o.Outcome == Done {
			own[i].Call = max(o.Call, began)
		}
		last = max(last, own[i].Call)
	}
}

// markTurns marks the steps of one lease ID that the callers of a cohort took without the store.
func markTurns(own []step) {
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, o := range own {
		if o.Kind == Acquire && o.Outcome == Done {
			first, last = min(first, o.Token), max(last, o.Token)
		}
	}
	for i, o := range own {
		own[i].turn = o.Kind == Acquire && o.Token > first
		own[i].handed = o.Kind == Release && o.Token != 0 && o.Token < last
	}
}

// A window is a time in which a lease may be held although no client knows.
type window struct{ from, to int64 }

// prepare turns the history of one name into the steps to put into order; see "What is unknown"
// in the package documentation.
func (m Model) prepare(ops []Op) []step {
	ids := map[string][]Op{}
	var inspects, faults []Op
	for _, o := range ops {
		switch {
		case o.Outcome == Failed:
		case o.Kind == Fault:
			faults = append(faults, o)
		case o.Kind == Inspect:
			inspects = append(inspects, o)
		default:
			ids[o.LeaseID] = append(ids[o.LeaseID], o)
		}
	}
	var steps []step
	var windows []window
	for _, own := range ids {
		afterTurns(own)
		slices.SortStableFunc(own, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
		s, w := m.prepareLease(twice(own, faults), len(faults) > 0)
		if m.Mode == Fenced && len(faults) > 0 {
			markTurns(s)
		}
		steps, windows = append(steps, s...), append(windows, w...)
	}
	for _, o := range inspects {
		if o.Outcome != Unknown {
			steps = append(steps, step{Op: o})
		}
	}
	steps = slices.DeleteFunc(steps, func(s step) bool { return s.excused(windows) })
	for _, o := range faults {
		steps = append(steps, step{Op: o})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.Call, b.Call) })
	return steps
}

// excused reports whether the step finds the name held at a time when the holder may be unknown.
func (s step) excused(windows []window) bool {
	if s.Outcome != Held && (s.Kind != Inspect || s.Outcome != Done) {
		return false
	}
	return slices.ContainsFunc(windows, func(w window) bool { return s.Call <= w.to && w.from <= s.Return })
}

// prepareLease prepares one client's requests for one lease ID, in this order.
func (m Model) prepareLease(ops []Op, faulty bool) (steps []step, windows []window) {
	var first *Op    // of a chain of acquires without an answer
	tainted := false // an acquire of the chain may still take effect
	cancelled := int64(math.MaxInt64)
	for i, o := range ops {
		s := step{Op: o}
		switch {
		case o.Kind == Acquire && o.Outcome == Unknown:
			if first == nil {
				first = &ops[i]
			}
			windows = append(windows, window{o.Call, m.hiddenUntil(o, ops[i+1:], faulty)})
			continue
		case o.Kind == Acquire && o.Outcome == Done:
			if first != nil {
				s.Call, first = first.Call, nil
			}
		case o.Kind == Acquire && o.Outcome == Cancelled:
			s.never = cancelled > o.Return
		case o.Kind == Extend && o.Outcome == Unknown:
			continue
		case o.Kind == Release && o.Outcome == Unknown:
			s.doubt = true
		case o.Kind == Cancel:
			cancelled = min(cancelled, o.Call)
			s.doubt = o.Outcome == Unknown
			if o.Outcome == Unknown {
				break
			}
			s.tomb = slices.ContainsFunc(ops[i+1:], func(later Op) bool { return later.Kind == Acquire })
			first, tainted = nil, false
		}
		if o.Kind != Acquire {
			tainted = tainted || first != nil
		}
		// A repeat without a reply may have made a new lease of the old ID, with an unknown
		// token.
		if tainted && (o.Kind == Extend || o.Kind == Release) {
			s.doubt = true
		}
		steps = append(steps, s)
	}
	return steps, windows
}

// twice returns the requests for one lease ID. For each acquire during a fault it adds one
// without a reply.
func twice(ops, faults []Op) (all []Op) {
	for _, o := range ops {
		all = append(all, o)
		if o.Kind == Acquire && o.Outcome != Unknown && slices.ContainsFunc(faults, o.overlaps) {
			o.Outcome, o.Token, o.Deadline = Unknown, 0, 0
			all = append(all, o)
		}
	}
	return all
}

// overlaps reports whether two operations may have been executed in either order.
func (o Op) overlaps(other Op) bool { return o.Call <= other.Return && other.Call <= o.Return }

// hiddenUntil returns the time until which a lease of an acquire without a reply may be held.
// later are the client's next requests for the same lease ID.
func (m Model) hiddenUntil(o Op, later []Op, faulty bool) int64 {
	end := int64(math.MaxInt64)
	if m.Linger < math.MaxInt64-o.TTL {
		end = o.Return + int64(m.Linger+o.TTL)
	}
	for _, l := range later {
		switch {
		case l.Kind == Acquire && l.Outcome == Done && !faulty:
			if l.Return < o.Call+int64(o.TTL)*9/10 {
				return o.Call - 1 // not hidden: it was the same lease
			}
			return min(end, l.Return) // the hidden lease may have ended before the other began
		case l.Kind == Cancel && l.Outcome != Unknown && !faulty:
			return min(end, l.Return) // a copy that arrives later is refused
		case l.Kind == Acquire && l.Outcome == Unknown, l.Kind == Extend && l.Outcome == Unknown:
			end = max(end, l.Return+int64(l.TTL)) // it may have extended the hidden lease
		}
	}
	return end
}
