package quorum

import "errors"

// A key is a compact encoding of a state.
type key [3]uint64

// A system is what search explores: its states, the steps between them, and the properties that a
// step breaks.
type system interface {
	// initial returns the states to start with.
	initial() []key
	// next yields the result of each possible step from k. broken is the property that the step
	// breaks, or "".
	next(k key, yield func(to key, s step, broken string))
}

// A result is the result of a search.
type result struct {
	states int    // how many were reached
	broken string // the property that was violated; empty if none was
	first  key    // the initial state of the trace
	trace  []step // the fewest steps to the violation
}

// mostStates bounds the memory of one search to about 250 MB.
const mostStates = 6_000_000

var errTooMany = errors.New("the search has more states than it may")

// search explores sys breadth first, so the first violation that it finds has the fewest steps.
func search(sys system) (result, error) {
	v := newVisited()
	for _, k := range sys.initial() {
		v.add(k, 0)
	}
	var broken string
	for at := 0; at < len(v.keys) && broken == ""; at++ {
		sys.next(v.keys[at], func(to key, _ step, violated string) {
			if broken != "" {
				return
			}
			v.add(to, uint32(at))
			broken = violated
			if broken != "" {
				v.keys, v.parents = append(v.keys, to), append(v.parents, uint32(at))
			}
		})
		if len(v.keys) > mostStates {
			return result{states: len(v.keys)}, errTooMany
		}
	}
	r := result{states: len(v.keys), broken: broken}
	if broken != "" {
		r.first, r.trace = v.trace(sys)
	}
	return r, nil
}

// visited is a set of states in the order in which they were found, each with its predecessor.
type visited struct {
	keys    []key
	parents []uint32
	slots   []uint32 // hash table of indexes into keys, plus 1; 0 is empty
}

func newVisited() *visited { return &visited{slots: make([]uint32, 1<<16)} }

// add adds k, found from the state with the index parent, unless it is there.
func (v *visited) add(k key, parent uint32) {
	if 2*len(v.keys) >= len(v.slots) {
		v.grow()
	}
	slot := v.find(k)
	if v.slots[slot] != 0 {
		return
	}
	v.keys, v.parents = append(v.keys, k), append(v.parents, parent)
	v.slots[slot] = uint32(len(v.keys))
}

// find returns the slot of k, or the empty slot where k belongs.
func (v *visited) find(k key) uint64 {
	mask := uint64(len(v.slots) - 1)
	h := k[0]*0x9e3779b97f4a7c15 ^ k[1]*0xc2b2ae3d27d4eb4f ^ k[2]*0x165667b19e3779f9
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	slot := (h ^ h>>32) & mask
	for v.slots[slot] != 0 && v.keys[v.slots[slot]-1] != k {
		slot = (slot + 1) & mask
	}
	return slot
}

func (v *visited) grow() {
	v.slots = make([]uint32, 4*len(v.slots))
	for i, k := range v.keys {
		v.slots[v.find(k)] = uint32(i + 1)
	}
}

// trace returns the steps that lead to the last state, and their initial state.
func (v *visited) trace(sys system) (key, []step) {
	first := len(sys.initial())
	path := []int{len(v.keys) - 1}
	for path[0] >= first {
		path = append([]int{int(v.parents[path[0]])}, path...)
	}
	var steps []step
	for i := 1; i < len(path); i++ {
		var taken step
		sys.next(v.keys[path[i-1]], func(to key, s step, broken string) {
			last := i == len(path)-1
			if to == v.keys[path[i]] && (!last || broken != "") && taken == (step{}) {
				taken = s
			}
		})
		steps = append(steps, taken)
	}
	return v.keys[path[0]], steps
}
