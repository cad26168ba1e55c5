package dashboard

import (
	"encoding/json"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

// session answers GET /v1/session: the name of the user, and the actions that the page
// offers. Authorize decides about each when it comes. Signing in is the program's business.
func (d *Dashboard) session(w http.ResponseWriter, r *http.Request) {
	features, _ := driver.FeaturesOf(d.opts.Engine) // New has checked them
	v := wire.Session{Caller: d.viewer(r), Rights: []string{"read"}, History: features.Historian != nil, Actions: []string{}}
	if d.opts.Authorize != nil {
		v.Actions = []string{string(Break), string(Hold), string(Release), string(Forget)}
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // a browser that is gone needs no answer
}
