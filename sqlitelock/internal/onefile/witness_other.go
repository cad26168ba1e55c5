//go:build !linux

package onefile

// CanWitness reports that this system lacks the locks that a witness needs.
const CanWitness = false

// A witness needs open file description locks, which only Linux has.
type witness struct{}

func testify(string, uint64, bool) witness { return witness{} }

// Close does nothing, and so does Wait.
func (*Files) Close() {}

func witnesses(string, uint64, bool) (same, other bool) { return false, false }

func (*Files) Wait(bool) {}

// SameBoot returns true: this system cannot show it.
func (*Files) SameBoot(string) bool { return true }

// OthersWait returns false: this system cannot show it.
func (*Files) OthersWait() bool { return false }

// isMountPoint returns false: only directories can be mounted here.
func isMountPoint(string) (bool, error) { return false, nil }
