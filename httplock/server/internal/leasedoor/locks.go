package leasedoor

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/view"
)

const (
	defaultPage = 1000 // items
	ndjson      = "application/x-ndjson"
)

// list answers GET /v1/locks.
func (d *leases) list(w http.ResponseWriter, r *door.Request) error {
	return answerList(w, r, caller.Read, d.house.Client.List, func(l driver.Lock) string { return l.Name }, wire.LockOf,
		func(locks []wire.Lock, next string) any { return wire.Locks{Locks: locks, NextCursor: next} })
}

// answerList answers with a page of a list, sorted by name, or, to those who want lines of
// JSON, with all of it as it comes from the store.
func answerList[T, V any](
	w http.ResponseWriter, r *door.Request, right caller.Rights,
	list func(ctx context.Context, prefix string) iter.Seq2[T, error], name func(T) string, show func(T) V,
	page func(items []V, next string) any,
) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	if err := r.Need(right, p.prefix); err != nil {
		return err
	}
	shown := func(yield func(T, error) bool) {
		for item, err := range list(r.Context(), p.prefix) {
			if (err != nil || r.Shows(right, name(item))) && !yield(item, err) {
				return
			}
		}
	}
	if wantsLines(r) {
		return writeLines(w, shown, show)
	}
	items, next, err := least(shown, name, p.after, p.limit)
	if err != nil {
		return err
	}
	views := make([]V, len(items))
	for i, item := range items {
		views[i] = show(item)
	}
	return door.Write(w, http.StatusOK, page(views, cursorOf(next)))
}

// A page says which part of a list is wanted.
type page struct {
	prefix, after string
	limit         int
}

func pageOf(r *door.Request) (p page, err error) {
	q := r.URL.Query()
	p = page{prefix: q.Get("prefix"), limit: defaultPage}
	if p.prefix != "" {
		if err := driver.CheckName(p.prefix); err != nil {
			return p, door.Invalid("prefix: " + err.Error())
		}
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Get("cursor"))
	if err != nil {
		return p, door.Invalid("cursor: want the next_cursor of the page before")
	}
	p.after = string(after)
	if text := q.Get("limit"); text != "" {
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 1 || p.limit > defaultPage {
			return p, door.Invalid(fmt.Sprintf("limit: want 1 to %d", defaultPage))
		}
	}
	return p, nil
}

func cursorOf(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

// least returns the first items of a list, sorted by name, of those behind a name, and the
// name of the last of them if there are more. It keeps no more than it needs.
func least[T any](all iter.Seq2[T, error], name func(T) string, after string, limit int) (items []T, next string, err error) {
	sorted := func() {
		slices.SortFunc(items, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	}
	more := false
	for item, err := range all {
		if err != nil {
			return nil, "", err
		}
		if name(item) <= after {
			continue
		}
		if items = append(items, item); len(items) == 2*limit+1 {
			sorted()
			clear(items[limit:])
			items, more = items[:limit], true
		}
	}
	if sorted(); len(items) > limit {
		items, more = items[:limit], true
	}
	if more {
		next = name(items[limit-1])
	}
	return items, next, nil
}

// wantsLines reports whether a list is to be written as lines of JSON.
func wantsLines(r *door.Request) bool {
	for _, text := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(text, ",") {
			if kind, _, err := mime.ParseMediaType(one); err == nil && kind == ndjson {
				return true
			}
		}
	}
	return false
}

// writeLines writes a list as lines of JSON. An error behind the first line cuts the
// answer, which clients of HTTP notice.
func writeLines[T, V any](w http.ResponseWriter, all iter.Seq2[T, error], show func(T) V) error {
	begun := false
	begin := func() {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", ndjson)
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusOK)
		}
	}
	lines := json.NewEncoder(w)
	for item, err := range all {
		if err != nil {
			return err
		}
		begin()
		door.Patience(w)
		if lines.Encode(show(item)) != nil {
			return nil // a caller that is gone needs no more
		}
	}
	begin()
	return nil
}

// show answers GET /v1/locks/{name}.
func (d *leases) show(w http.ResponseWriter, r *door.Request) error {
	name, err := named(r, caller.Read)
	if err != nil {
		return err
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	lock, err := view.Look(ctx, d.house.Client, name)
	if err != nil {
		return err
	}
	return door.Write(w, http.StatusOK, lock.Details())
}

// history answers GET /v1/locks/{name}/history.
func (d *leases) history(w http.ResponseWriter, r *door.Request) error {
	name, err := named(r, caller.Read)
	if err != nil {
		return err
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	events, err := d.house.Client.History(ctx, name)
	switch {
	case errors.Is(err, driver.ErrUnsupported):
		return fmt.Errorf("%w: start the server with history=1 in the URL of its store, if that is one that can write history down", err)
	case err != nil:
		return err
	}
	return door.Write(w, http.StatusOK, wire.HistoryOf(name, events))
}

// named returns the name in the path of a request, which the caller needs a right to.
func named(r *door.Request, right caller.Rights) (string, error) {
	name, err := pathName(r, "name")
	if err != nil {
		return "", err
	}
	return name, r.Need(right, name)
}

// pathName returns the valid name that stands for a wildcard in the path of a request.
func pathName(r *door.Request, wildcard string) (string, error) {
	name, err := door.PathName(r.Request, wildcard)
	if err != nil {
		return "", err
	}
	if err := driver.CheckName(name); err != nil {
		return "", door.Invalid(err.Error())
	}
	return name, nil
}
