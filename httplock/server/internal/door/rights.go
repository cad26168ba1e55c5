package door

import (
	"context"
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// For returns f as a handler for callers who have one of these rights, to any name. Other
// callers are refused before their bodies are read. f checks the name, which most requests
// have in the body. If rights is 0, all callers may send the request.
func (h *House) For(rights caller.Rights, f Func) http.Handler {
	return h.Handle(func(w http.ResponseWriter, r *Request) error {
		if rights != 0 && r.Caller.Rights&rights == 0 {
			return Lacks(rights&-rights, "") // the first of them
		}
		if _, err := r.TimeoutMS(); err != nil {
			return err
		}
		return f(w, r)
	})
}

// Act returns a refusal unless the caller may do this.
func (r *Request) Act(a caller.Action) error {
	if r.Caller.Authorize == nil {
		return nil
	}
	if err := r.Caller.Authorize(a); err != nil {
		return &Refusal{Status: http.StatusForbidden, Code: "not-permitted", Detail: err.Error(), Name: a.Name}
	}
	return nil
}

// NeedLease returns a refusal unless the caller may keep or end a lease of a name: it needs
// one of the two rights that can acquire a lease.
func (r *Request) NeedLease(name string) error {
	if r.Shows(caller.Once, name) {
		return nil
	}
	return r.Need(caller.Acquire, name)
}

// Room returns an error if the caller has reached its limit of bytes in the store, so that the result
// of do-once work would find no room. If the work is done, it returns the record instead.
func (r *Request) Room(ctx context.Context, name string) (record []byte, err error) {
	if err = r.House.Limits.Room(r.Caller); err == nil {
		return nil, nil
	}
	if done, found, failed := r.House.Features.Recorder.Recall(ctx, name); found && failed == nil {
		return done.Data, nil
	}
	return nil, err
}

// A StoreFunc is a Func that sends requests to the store, within the budget of the client's
// request.
type StoreFunc func(ctx context.Context, w http.ResponseWriter, r *Request) error

// ForStore does as For.
func (h *House) ForStore(rights caller.Rights, f StoreFunc) http.Handler {
	return h.For(rights, func(w http.ResponseWriter, r *Request) error {
		ctx, cancel := r.Budgeted()
		defer cancel()
		return f(ctx, w, r)
	})
}

// A NamedFunc is a StoreFunc for a name in the path of the request.
type NamedFunc func(ctx context.Context, w http.ResponseWriter, r *Request, name string) error

// ForName does as ForStore, for callers who have this right to the name for a wildcard in the path.
func (h *House) ForName(wildcard string, right caller.Rights, f NamedFunc) http.Handler {
	return h.ForStore(right, func(ctx context.Context, w http.ResponseWriter, r *Request) error {
		name, err := r.Name(wildcard)
		if err != nil {
			return err
		}
		if err := r.Need(right, name); err != nil {
			return err
		}
		return f(ctx, w, r, name)
	})
}

// Reading returns f as a StoreFunc that reads the body first.
func Reading[T any](f func(ctx context.Context, w http.ResponseWriter, r *Request, body T) error) StoreFunc {
	return func(ctx context.Context, w http.ResponseWriter, r *Request) error {
		var body T
		if err := r.Read(&body); err != nil {
			return err
		}
		return f(ctx, w, r, body)
	}
}
