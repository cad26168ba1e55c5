package dashboard

import (
	"encoding/json"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
)

// session answers GET /v1/session: as whom somebody looks, and what they may do, as far as
// that is known before they do it.
func (d *Dashboard) session(w http.ResponseWriter, r *http.Request) {
	features, _ := driver.FeaturesOf(d.opts.Engine) // New has looked at them
	actions := []ActionKind{}
	if d.opts.Authorize != nil {
		actions = append(actions, Break, Hold, Release, Forget)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]any{ // a browser that is gone needs no answer
		"caller": d.viewer(r), "rights": []string{"read"}, "prefixes": nil,
		"signed_in": false, "sign_in": false, "notice": "",
		"history": features.Historian != nil, "actions": actions,
	})
}
