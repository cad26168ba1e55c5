//go:build !linux

package onefile

// CanWitness reports that this system lacks the locks that a witness needs.
const CanWitness = false

// A witness needs open file description locks, which only Linux has.
type witness struct{}

func testify(string, uint64, bool) witness { return witness{} }

func (witness) close() {}

func witnesses(string, uint64, bool) (same, other bool) { return false, false }

func (witness) wait(string, bool) {}

func (witness) othersWait(string) bool { return false }

// isMountPoint returns false: only directories can be mounted here.
func isMountPoint(string) (bool, error) { return false, nil }
