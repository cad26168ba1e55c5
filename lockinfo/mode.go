package lockinfo

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/internal/sentinel"
)

// A Mode is which leases of a name are compatible, and how much of the name a lease
// takes: Exclusive, Shared, or what Permits returns. The zero Mode is Exclusive. Modes
// are compared with ==.
type Mode uint64

// The modes without permits.
const (
	Exclusive Mode = 0 // one lease
	Shared    Mode = 1 // any number of shared leases, or one exclusive
)

// MaxLimit is the greatest limit of Permits.
const MaxLimit = 1_000_000

// Permits returns the mode of a semaphore's lease that takes n of limit permits: the
// leases of the name have at most limit permits together. All users of a name must give
// the same limit at a time. Functions that take a Mode refuse one with n below 1 or above
// limit, or with a limit above MaxLimit, with the error of Check. A Mode can hold numbers
// from -2^30 to 2^30-1; Permits replaces others by the nearest of these.
func Permits(n, limit int) Mode { return semaphore | pack(n)<<permitsAt | pack(limit)<<limitAt }

// The lowest two bits of a Mode are its kind. Permits and limit are signed numbers of 31 bits
// each. They are 0 unless the kind is semaphore.
const (
	semaphore Mode = 2
	kinds     Mode = 3

	permitsAt = 2
	limitAt   = 33
	farthest  = 1 << 30
)

func pack(n int) Mode { return Mode(uint32(min(max(n, -farthest), farthest-1)) << 1 >> 1) }

func (m Mode) number(at int) int {
	if m&kinds != semaphore {
		return 0
	}
	return int(int32(m>>at<<1) >> 1)
}

// Permits returns how many permits a lease of this mode takes; 0 if function Permits has not made
// the mode.
func (m Mode) Permits() int { return m.number(permitsAt) }

// Limit returns how many permits there are; 0 if function Permits has not made the mode.
// Leases of one name have modes with the same Limit.
func (m Mode) Limit() int { return m.number(limitAt) }

// Kind returns "exclusive", "shared" or "semaphore", for uses such as labels of metrics, which
// must have few values.
func (m Mode) Kind() string {
	switch {
	case m == Exclusive:
		return "exclusive"
	case m == Shared:
		return "shared"
	case m&kinds == semaphore:
		return "semaphore"
	}
	return fmt.Sprintf("Mode(%d)", uint64(m))
}

// String returns "exclusive", "shared", or the permits: "2 of 5 permits".
func (m Mode) String() string {
	if m&kinds == semaphore {
		return fmt.Sprintf("%d of %d permits", m.Permits(), m.Limit())
	}
	return m.Kind()
}

// Check returns an error that wraps holdfast.ErrInvalid if the mode is not Exclusive,
// Shared, or of Permits with numbers in range.
func (m Mode) Check() error {
	switch n, limit := m.Permits(), m.Limit(); {
	case m == Exclusive, m == Shared:
		return nil
	case m&kinds != semaphore:
		return fmt.Errorf("%w Mode(%d): want Exclusive, Shared or Permits", sentinel.ErrInvalid, uint64(m))
	case limit < 1 || limit > MaxLimit:
		return fmt.Errorf("%w Permits(%d, %d): want a limit of 1 to %d", sentinel.ErrInvalid, n, limit, MaxLimit)
	case n < 1 || n > limit:
		return fmt.Errorf("%w Permits(%d, %d): want 1 to %d permits", sentinel.ErrInvalid, n, limit, limit)
	}
	return nil
}

// Plus returns the mode of a lease of m and a lease of other together: the sum of their permits
// if other has permits, and otherwise other. Both must be leases of one name.
func (m Mode) Plus(other Mode) Mode {
	if other&kinds != semaphore {
		return other
	}
	return Permits(m.Permits()+other.Permits(), other.Limit())
}

// MarshalText returns what String does. It fails for a mode that Check refuses.
func (m Mode) MarshalText() ([]byte, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads what MarshalText returns. Another text is an error that wraps
// holdfast.ErrInvalid, and leaves the mode unchanged.
func (m *Mode) UnmarshalText(text []byte) error {
	read := Exclusive
	switch string(text) {
	case "exclusive":
	case "shared":
		read = Shared
	default:
		var n, limit int
		_, _ = fmt.Sscanf(string(text), "%d of %d permits", &n, &limit) // leaves 0 where it cannot read a number
		if read = Permits(n, limit); read.String() != string(text) {
			return fmt.Errorf(`%w mode %q: want "exclusive", "shared" or such as "2 of 5 permits"`, sentinel.ErrInvalid, text)
		}
	}
	if err := read.Check(); err != nil {
		return err
	}
	*m = read
	return nil
}
