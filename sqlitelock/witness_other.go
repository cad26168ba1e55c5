//go:build !linux

package sqlitelock

const canWitness = false

// A witness says which file an open engine has. There is none here.
type witness struct{}

func testify(string, uint64, bool) witness { return witness{} }

func (witness) close() {}

func witnesses(string, uint64, bool) (same, other bool) { return false, false }

func (witness) waits(string, bool) {}

func (witness) othersWait(string) bool { return false }
