package lookdoor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/header"
	"github.com/holdfast-locks/holdfast/internal/view"
	"github.com/holdfast-locks/holdfast/wire"
)

// A condition is the state of a lock that the client knows, and how long the client waits for
// another state.
type condition struct {
	tags []string // of If-None-Match
	wait time.Duration
}

// show answers GET /v1/locks/{name}.
func (d *desk) show(ctx context.Context, w http.ResponseWriter, r *door.Request, name string) error {
	c, err := conditionOf(r)
	if err != nil {
		return err
	}
	var s sight
	if c.wait > 0 && len(c.tags) > 0 {
		s, err = d.change(r, name, c)
	} else {
		s = d.see(ctx, name)
		err = s.err
	}
	if err != nil {
		return err
	}
	w.Header().Set("ETag", s.tag)
	if c.knows(s) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return door.WriteLong(w, r, s.lock)
}

// conditionOf reads the header and the query of a request.
func conditionOf(r *door.Request) (c condition, err error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return c, door.Invalid("the query is not one: " + err.Error())
	}
	if values := q["wait_ms"]; len(values) > 0 {
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil || n < 0 || len(values) > 1 {
			return c, door.Invalid(fmt.Sprintf("wait_ms is %q in the query: want milliseconds, 0 or more", values))
		}
		c.wait = min(lease.MS(n), lease.LongestWait)
	}
	for one := range header.List(r.Header, "If-None-Match") {
		tag := strings.TrimPrefix(one, "W/")
		if len(tag) < 2 || tag[0] != '"' || strings.IndexByte(tag[1:], '"') != len(tag)-2 {
			return c, door.Invalid(fmt.Sprintf("If-None-Match is %q: want the ETag of an earlier answer", one))
		}
		c.tags = append(c.tags, tag)
	}
	return c, nil
}

// knows reports whether the client has this state already.
func (c condition) knows(s sight) bool {
	return slices.Contains(c.tags, strings.TrimPrefix(s.tag, "W/"))
}

// A sight is the result of one look at a name.
type sight struct {
	began time.Time
	lock  wire.LockDetails
	tag   string // the same as long as nothing but time has passed
	err   error
}

// see looks at a name.
func (d *desk) see(ctx context.Context, name string) (s sight) {
	s.began = time.Now()
	lock, err := view.Look(ctx, d.house.Client, name)
	if s.err = err; err == nil {
		s.lock = lock.Details()
		s.tag, s.err = tagOf(s.lock)
	}
	return s
}

// tagOf returns the ETag of a lock, which is the same at all servers. It is weak: it leaves
// out the durations in the response.
func tagOf(lock wire.LockDetails) (string, error) {
	text, err := json.Marshal(lock)
	if err != nil {
		return "", err
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return "", err
	}
	if text, err = json.Marshal(timeless(v)); err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`, nil
}

// timeless returns v without its durations. A label may have the name of a duration, but its
// value is text.
func timeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if _, text := value.(string); strings.HasSuffix(name, "_ms") && !text {
				delete(v, name)
				continue
			}
			v[name] = timeless(value)
		}
	case []any:
		for i := range v {
			v[i] = timeless(v[i])
		}
	}
	return v
}

// change waits until a lock differs from the state that the client knows, and returns its
// state then, or at the end of the wait. It ends early if the client disconnects or loses
// its rights.
func (d *desk) change(r *door.Request, name string, c condition) (sight, error) {
	if err := r.NewWork(); err != nil {
		return sight{}, err
	}
	ctx, cancel := r.Patient(c.wait)
	defer cancel()
	leave, err := d.house.Limits.Waiter(r.Caller)
	if err != nil {
		return sight{}, err
	}
	defer leave()
	joined := time.Now()
	watch, part := d.watches.join(name)
	defer part()
	end, again := time.NewTimer(c.wait), time.NewTicker(door.LookAgain/4)
	defer end.Stop()
	defer again.Stop()
	for first, over := true, false; ; {
		s, next := watch.latest()
		if !s.began.Before(joined) { // an earlier look may be older than the state that the client knows
			if over || s.err == nil && !c.knows(s) || s.err != nil && first {
				return s, s.err
			}
			first = false
		}
		select {
		case <-next:
		case <-end.C:
			over = true
		case <-again.C:
			if r.Revoked() {
				return sight{}, door.ErrRevoked
			}
		case <-d.house.Draining:
			return sight{}, r.NewWork()
		case <-ctx.Done():
			return sight{}, fmt.Errorf("%w: %w", driver.ErrUnavailable, ask.ContextError(ctx)) // nothing was done
		}
	}
}
