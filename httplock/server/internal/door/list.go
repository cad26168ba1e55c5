package door

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/header"
)

const (
	defaultPage = 1000 // items
	ndjson      = "application/x-ndjson"
)

// List answers with a page of a list, sorted by name. A client that accepts lines of JSON
// gets the whole list, in the order of the store.
func List[T, V any](
	w http.ResponseWriter, r *Request, right caller.Rights,
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
	leave, err := r.House.Limits.List(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer leave()
	shown := func(yield func(T, error) bool) {
		for item, err := range list(r.Context(), p.prefix) {
			if (err != nil || r.Shows(right, name(item))) && !yield(item, err) {
				return
			}
		}
	}
	if WantsLines(r) {
		return Lines(w, r, shown, show)
	}
	items, next, err := least(shown, name, p.after, p.limit)
	if err != nil {
		return err
	}
	views := make([]V, len(items))
	for i, item := range items {
		views[i] = show(item)
	}
	return WriteLong(w, r, page(views, cursorOf(next)))
}

// A page is the requested part of a list.
type page struct {
	prefix, after string
	limit         int
}

func pageOf(r *Request) (p page, err error) {
	q := r.URL.Query()
	p = page{prefix: q.Get("prefix"), limit: defaultPage}
	if p.prefix != "" {
		if err := driver.CheckName(p.prefix); err != nil {
			return p, Invalid("prefix: " + err.Error())
		}
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Get("cursor"))
	if err != nil {
		return p, Invalid("cursor: want the next_cursor of the page before")
	}
	p.after = string(after)
	if text := q.Get("limit"); text != "" {
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 1 || p.limit > defaultPage {
			return p, Invalid(fmt.Sprintf("limit: want 1 to %d", defaultPage))
		}
	}
	return p, nil
}

func cursorOf(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

// least returns the first limit items of a list whose names follow after, sorted by name. If
// there are more, next is the name of the last one. It never keeps more than 2*limit+1 items.
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

// WantsLines reports whether a list is to be written as lines of JSON.
func WantsLines(r *Request) bool {
	for one := range header.List(r.Header, "Accept") {
		if kind, _, err := mime.ParseMediaType(one); err == nil && kind == ndjson {
			return true
		}
	}
	return false
}

// Lines answers with a list as lines of JSON. An error after the first line cuts the
// response, which HTTP clients notice.
func Lines[T, V any](w http.ResponseWriter, r *Request, all iter.Seq2[T, error], show func(T) V) error {
	lines, end := json.NewEncoder(w), func() error { return nil }
	begin := sync.OnceFunc(func() {
		h := w.Header()
		h.Set("Content-Type", ndjson)
		h.Set("Cache-Control", "no-store")
		h.Add("Vary", "Accept-Encoding")
		if header.TakesGzip(r.Header) {
			h.Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			lines, end = json.NewEncoder(zip), zip.Close
		}
		w.WriteHeader(http.StatusOK)
	})
	for item, err := range all {
		if err != nil {
			return err
		}
		begin()
		Patience(w)
		if lines.Encode(show(item)) != nil {
			return nil // the client is gone
		}
	}
	begin()
	_ = end() // the client may be gone
	return nil
}
