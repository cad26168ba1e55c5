package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/wire"
)

// A status is the state of one lock for a monitor.
type status struct {
	Name         string        `json:"name"`
	State        string        `json:"state"` // free, held, frozen by a person, closed by a minimum hold
	Mode         string        `json:"mode"`
	Limit        int           `json:"limit"`
	Holders      []wire.Holder `json:"holders"`
	HeldMS       *int64        `json:"held_ms"` // of the oldest lease; null: no lease, or unknown
	QueueLength  int           `json:"queue_length"`
	OldestWaitMS *int64        `json:"oldest_wait_ms"` // null: the queue is empty
}

// statusPath is the path for monitors, outside of the API.
const statusPath = "/status.json"

// statusOf answers GET /status.json?name=NAME from the response of api to the same client.
func statusOf(api http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuseMethod(w, "GET, HEAD")
		return
	}
	names := r.URL.Query()["name"]
	if len(names) != 1 || driver.CheckName(names[0]) != nil {
		refuse(w, http.StatusBadRequest, "invalid", "say which lock: name=NAME in the query, once")
		return
	}
	asked := *r
	asked.Method, asked.Header = http.MethodGet, r.Header.Clone()
	asked.Header.Del("Accept-Encoding") // statusOf reads the response as plain text
	asked.Header.Del("If-None-Match")   // its tag is not the lock's
	asked.URL = &url.URL{Path: "/v1/locks/~", RawQuery: url.Values{"name": names}.Encode()}
	a := &kept{ResponseWriter: w, status: http.StatusOK}
	api.ServeHTTP(a, &asked)
	var lock wire.LockDetails
	switch {
	case a.status != http.StatusOK:
	case json.Unmarshal(a.body.Bytes(), &lock) != nil:
		problem.Write(w, wire.Problem{Status: http.StatusBadGateway, Code: "unreadable", Detail: fmt.Sprintf("what is known of %q cannot be read", names[0])})
		return
	default:
		a.body.Reset()
		_ = json.NewEncoder(&a.body).Encode(statusFor(lock)) // of strings and numbers, into memory
	}
	w.WriteHeader(a.status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(a.body.Bytes()) // a monitor that is gone needs no answer
	}
}

func statusFor(l wire.LockDetails) status {
	s := status{Name: l.Name, State: "free", Mode: l.Mode, Limit: l.Limit, Holders: l.Holders, QueueLength: l.QueueLength}
	for _, h := range l.Holders {
		switch {
		case h.Released && s.State == "free":
			s.State = "closed"
		case h.Person:
			s.State = "frozen"
		case !h.Released && s.State != "frozen":
			s.State = "held"
		}
		if h.HeldMS != nil && !h.Released {
			s.HeldMS = longest(s.HeldMS, *h.HeldMS)
		}
	}
	for _, p := range l.Queue {
		s.OldestWaitMS = longest(s.OldestWaitMS, p.WaitingMS)
	}
	return s
}

func longest(so *int64, ms int64) *int64 {
	if so != nil {
		ms = max(ms, *so)
	}
	return &ms
}

// A kept is a response whose status and body are kept, not sent. Its header goes to the client.
type kept struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (k *kept) WriteHeader(status int)      { k.status = status }
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }

// Unwrap is for http.ResponseController.
func (k *kept) Unwrap() http.ResponseWriter { return k.ResponseWriter }
