package lookdoor

import (
	"encoding/json"
	"hash/maphash"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// mostGone is how many names without holders and waiters are remembered.
const mostGone = 10_000

// marks has the revision in which each name was last seen to change. INVARIANT I11: it has the
// names of one list, and mostGone more.
type marks struct {
	seed   maphash.Seed
	names  map[string]mark
	gone   int    // how many of names are gone
	latest uint64 // revision
	oldest uint64 // revision since which all changes are known
}

// A mark is the state of one name.
type mark struct {
	sum  uint64 // of the lock
	at   uint64 // the revision
	list uint64 // the number of the list that had it last
	gone bool
}

func newMarks() *marks {
	return &marks{seed: maphash.MakeSeed(), names: map[string]mark{}, latest: 1, oldest: 1}
}

// update compares the marks with a list of all locks. list is the number of the list. Changes
// make a new revision.
func (m *marks) update(list uint64, locks []lockinfo.LockState) {
	next, changed := m.latest+1, false
	note := func(name string, k mark) {
		changed = true
		k.at = next
		m.names[name] = k
	}
	for i := range locks {
		l := &locks[i]
		old, known := m.names[l.Name]
		k := mark{sum: m.sum(l), at: old.at, list: list}
		if known && !old.gone && old.sum == k.sum {
			m.names[l.Name] = k
			continue
		}
		if old.gone {
			m.gone--
		}
		note(l.Name, k)
	}
	for name, k := range m.names {
		if k.list != list && !k.gone {
			m.gone++
			k.gone = true
			note(name, k)
		}
	}
	if changed {
		m.latest = next
	}
	if m.gone > mostGone {
		m.forget()
	}
}

// forget drops the names that are gone. A client that knows an earlier revision gets a whole
// list.
func (m *marks) forget() {
	for name, k := range m.names {
		if k.gone {
			delete(m.names, name)
		}
	}
	m.gone, m.oldest = 0, m.latest
}

// sum returns a hash of a lock. It stays the same while only time passes and each renewal comes
// in time.
func (m *marks) sum(l *lockinfo.LockState) uint64 {
	v := wire.LockOf(*l)
	late := make([]bool, len(v.Holders))
	for i := range v.Holders {
		v.Holders[i].HeldMS = nil
		if l.Holders[i].ExpiresIn != lockinfo.Never {
			v.Holders[i].ExpiresInMS = new(int64)
		}
		late[i] = isLate(l.Holders[i])
	}
	text, err := json.Marshal(struct {
		wire.Lock
		Late []bool
	}{v, late})
	if err != nil {
		panic(err) // it has strings and numbers only
	}
	return maphash.Bytes(m.seed, text)
}

// isLate reports whether a lease should have been renewed: less than a third of it is left.
func isLate(h lockinfo.Holding) bool {
	return !h.Released && !h.Holder.Person && h.ExpiresIn != lockinfo.Never && h.ExpiresIn < h.TTL/3
}
