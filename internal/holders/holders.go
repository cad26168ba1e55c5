// Package holders has the holder of a lock as the stores keep it: as JSON.
package holders

import (
	"encoding/json"

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
