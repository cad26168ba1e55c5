// Package holders has the holder of a lock as the stores keep it: as JSON.
package holders

import (
	"encoding/json"
	"maps"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Text writes a holder.
func Text(h lockinfo.Holder) string {
	text, _ := json.Marshal(h) // strings and numbers: cannot fail
	return string(text)
}

// Read reads a holder. A holder is only shown to people, so Read does not fail: it returns the
// zero Holder for a malformed text.
func Read(text string) lockinfo.Holder {
	var h lockinfo.Holder
	if json.Unmarshal([]byte(text), &h) != nil {
		return lockinfo.Holder{}
	}
	return h
}

// Equal reports whether two holders have the same text.
func Equal(a, b lockinfo.Holder) bool {
	return a.Host == b.Host && a.PID == b.PID && a.User == b.User && a.Program == b.Program && a.Label == b.Label && a.Reason == b.Reason &&
		a.Person == b.Person && a.Caller == b.Caller && a.Once == b.Once && a.Fingerprint == b.Fingerprint &&
		maps.Equal(a.Labels, b.Labels)
}
