//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// A lockView is a lock as JSON. It has no lease IDs: whoever knows one can
// release the lease.
type lockView struct {
	Name         string        `json:"name"`
	Held         bool          `json:"held"`
	Mode         string        `json:"mode"`
	Limit        int           `json:"limit"` // of a semaphore; else 0
	Holders      []holderView  `json:"holders"`
	QueueLength  int           `json:"queue_length"`
	Queue        []waitingView `json:"queue,omitzero"` // in order; ls leaves it out
	LastToken    uint64        `json:"last_token"`
	LastTokenStr string        `json:"last_token_str"`
}

type personView struct {
	Host   string            `json:"host"`
	PID    int               `json:"pid"`
	Label  string            `json:"label"`
	Reason string            `json:"reason"`
	Labels map[string]string `json:"labels"`
}

type holderView struct {
	personView
	Permits         int    `json:"permits"` // of a semaphore; else 0
	FencingToken    uint64 `json:"fencing_token"`
	FencingTokenStr string `json:"fencing_token_str"` // for readers without 64-bit integers
	ExpiresInMS     *int64 `json:"expires_in_ms"`     // null: never
	Released        bool   `json:"released"`          // over, and kept closed by --min-hold
	Foreign         bool   `json:"foreign"`           // a client that is not holdfast
}

type waitingView struct {
	personView
	Mode        string `json:"mode"`
	Permits     int    `json:"permits"` // of a semaphore; else 0
	WaitingMS   int64  `json:"waiting_ms"`
	ExpiresInMS int64  `json:"expires_in_ms"` // of the place, unless it is renewed
}

type breakView struct {
	Name   string       `json:"name"`
	Author string       `json:"author"`
	Reason string       `json:"reason"`
	Broken []holderView `json:"broken"`
}

// A showView is a lock and who lost it.
type showView struct {
	lockView
	Broken []brokenView `json:"broken"` // in the last 24 hours, the latest last
}

type brokenView struct {
	Author          string     `json:"author"`
	Reason          string     `json:"reason"`
	AgoMS           int64      `json:"ago_ms"`
	FencingToken    uint64     `json:"fencing_token"`
	FencingTokenStr string     `json:"fencing_token_str"`
	Holder          personView `json:"holder"` // whose lease it was
}

type versionView struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v versionView) String() string {
	return fmt.Sprintf("holdfast %s (%s, %s)", v.Version, v.Go, v.Platform)
}

// viewOf returns a lock without its queue.
func viewOf(lock driver.Lock) lockView {
	return lockView{
		Name: lock.Name, Held: len(live(lock)) > 0, Mode: lock.Mode.String(), Limit: lock.Limit,
		Holders: holderViews(lock.Holders), QueueLength: lock.QueueLength,
		LastToken: lock.LastToken, LastTokenStr: strconv.FormatUint(lock.LastToken, 10),
	}
}

// fullViewOf returns a lock with its queue.
func fullViewOf(lock driver.Lock) lockView {
	v := viewOf(lock)
	v.Queue = []waitingView{}
	for _, w := range lock.Queue {
		v.Queue = append(v.Queue, waitingView{
			personView: personOf(w.Holder), Mode: w.Mode.String(), Permits: w.Permits,
			WaitingMS: w.Since.Milliseconds(), ExpiresInMS: w.ExpiresIn.Milliseconds(),
		})
	}
	return v
}

func showViewOf(lock driver.Lock, broken []holdfast.Broken) showView {
	v := showView{lockView: fullViewOf(lock), Broken: []brokenView{}}
	for _, b := range broken {
		v.Broken = append(v.Broken, brokenView{
			Author: b.Author, Reason: b.Reason, AgoMS: b.Ago.Milliseconds(),
			FencingToken: b.Token, FencingTokenStr: strconv.FormatUint(b.Token, 10), Holder: personOf(b.Holder),
		})
	}
	return v
}

func holderViews(holdings []driver.Holding) []holderView {
	views := []holderView{}
	for _, h := range holdings {
		views = append(views, holderView{
			personView: personOf(h.Holder), Permits: h.Permits,
			FencingToken: h.Token, FencingTokenStr: strconv.FormatUint(h.Token, 10),
			ExpiresInMS: milliseconds(h.ExpiresIn), Released: h.Released, Foreign: foreign(h),
		})
	}
	return views
}

func personOf(h driver.Holder) personView {
	return personView{Host: h.Host, PID: h.PID, Label: h.Label, Reason: h.Reason, Labels: h.Labels}
}

// milliseconds returns nil for what has no end.
func milliseconds(d time.Duration) *int64 {
	if d == driver.Never {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// live returns the holders who have not given the lock back.
func live(lock driver.Lock) (holders []driver.Holding) {
	for _, h := range lock.Holders {
		if !h.Released {
			holders = append(holders, h)
		}
	}
	return holders
}

// foreign reports whether a client that is not holdfast holds the lock.
func foreign(h driver.Holding) bool { return h.LeaseID == "" && !h.Released }

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
