//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/holdfast-locks/holdfast/driver"
)

// A lockView is a lock as JSON. It has no lease IDs: whoever knows one can
// release the lease.
type lockView struct {
	Name         string       `json:"name"`
	Held         bool         `json:"held"`
	Mode         string       `json:"mode"`
	Holders      []holderView `json:"holders"`
	LastToken    uint64       `json:"last_token"`
	LastTokenStr string       `json:"last_token_str"`
}

type holderView struct {
	Host            string            `json:"host"`
	PID             int               `json:"pid"`
	Label           string            `json:"label"`
	Reason          string            `json:"reason"`
	Labels          map[string]string `json:"labels"`
	FencingToken    uint64            `json:"fencing_token"`
	FencingTokenStr string            `json:"fencing_token_str"` // for readers without 64-bit integers
	ExpiresInMS     *int64            `json:"expires_in_ms"`     // null: never
	Released        bool              `json:"released"`          // over, and kept closed by --min-hold
	Foreign         bool              `json:"foreign"`           // a client that is not holdfast
}

type versionView struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v versionView) String() string {
	return fmt.Sprintf("holdfast %s (%s, %s)", v.Version, v.Go, v.Platform)
}

func viewOf(lock driver.Lock) lockView {
	v := lockView{
		Name: lock.Name, Mode: lock.Mode.String(), Holders: []holderView{},
		LastToken: lock.LastToken, LastTokenStr: strconv.FormatUint(lock.LastToken, 10),
	}
	for _, h := range lock.Holders {
		v.Held = v.Held || !h.Released
		view := holderView{
			Host: h.Holder.Host, PID: h.Holder.PID, Label: h.Holder.Label,
			Reason: h.Holder.Reason, Labels: h.Holder.Labels,
			FencingToken: h.Token, FencingTokenStr: strconv.FormatUint(h.Token, 10),
			Released: h.Released, Foreign: h.LeaseID == "",
		}
		if h.ExpiresIn != driver.Never {
			ms := h.ExpiresIn.Milliseconds()
			view.ExpiresInMS = &ms
		}
		v.Holders = append(v.Holders, view)
	}
	return v
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine says in one line whether the lock is held.
func printLine(w io.Writer, lock driver.Lock) error {
	if len(lock.Holders) == 0 {
		_, err := fmt.Fprintf(w, "%s is free\n", plain(lock.Name))
		return err
	}
	h := lock.Holders[0]
	until := "for another " + timeLeft(h)
	if h.ExpiresIn == driver.Never {
		until = "without an end"
	}
	_, err := fmt.Fprintf(w, "%s is %s %s\n", plain(lock.Name), possession(h), until)
	return err
}

// printLock describes one lock.
func printLock(w io.Writer, lock driver.Lock) error {
	if err := printLine(w, lock); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what, text string) {
		if text != "" {
			fmt.Fprintf(t, "  %s\t%s\n", what, plain(text))
		}
	}
	for _, h := range lock.Holders {
		row("mode", lock.Mode.String())
		row("reason", h.Holder.Reason)
		for _, key := range slices.Sorted(maps.Keys(h.Holder.Labels)) {
			row("label", key+"="+h.Holder.Labels[key])
		}
		row("token", token(h.Token))
	}
	if len(lock.Holders) == 0 {
		row("last token", token(lock.LastToken))
	}
	return t.Flush()
}

// printTable lists locks.
func printTable(w io.Writer, locks []driver.Lock) error {
	if len(locks) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tHOLDER\tEXPIRES IN\tTOKEN\tREASON")
	for _, lock := range locks {
		for _, h := range lock.Holders {
			fields := []string{lock.Name, h.Holder.String(), timeLeft(h), token(h.Token), h.Holder.Reason}
			if h.Released {
				fields[1] = "nobody (closed by --min-hold)"
			}
			for i, field := range fields {
				fields[i] = plain(field)
			}
			fmt.Fprintln(t, strings.TrimRight(strings.Join(fields, "\t"), "\t"))
		}
	}
	return t.Flush()
}

func possession(h driver.Holding) string {
	if h.Released {
		return "kept closed after " + plain(h.Holder.String()) + " released it"
	}
	return "held by " + plain(h.Holder.String())
}

func timeLeft(h driver.Holding) string {
	switch {
	case h.ExpiresIn == driver.Never:
		return "never"
	case h.ExpiresIn < 10*time.Second:
		return h.ExpiresIn.Round(100 * time.Millisecond).String()
	}
	return h.ExpiresIn.Round(time.Second).String()
}

func token(t uint64) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatUint(t, 10)
}

// plain makes text that others have chosen safe for a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, s)
}
