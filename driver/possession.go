package driver

import "github.com/holdfast-locks/holdfast/lockinfo"

// Possession describes for people which client has the lock, and since when: see
// lockinfo.Possession.
func (b Blocker) Possession() string {
	return lockinfo.Possession{
		Holder: b.Holder, Since: b.Since, ExpiresIn: b.ExpiresIn, Released: b.Released, Foreign: b.Foreign,
	}.String()
}
