package rediscore

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// ScanStep is how many keys the server looks at in one command of List, and how
// many names are inspected in one.
const ScanStep = 128

// List implements driver.Lister. It finds names by the last tokens that the
// store remembers and by their queues, so a lock of a foreign client is listed
// only if holdfast has held it within driver.TokenMemory, or waits for it.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return list(ctx, e, keys.Locks, prefix, func(names []string) (locks []driver.Lock, err error) {
		found, err := e.InspectAll(ctx, names, 0)
		for _, f := range found {
			// A name that cannot be inspected is not a lock now.
			if f.Err == nil && len(f.Lock.Holders)+f.Lock.QueueLength > 0 {
				locks = append(locks, f.Lock)
			}
		}
		return locks, err
	})
}

// list yields what look says of the names that a listing finds, of ScanStep names
// at a time at most.
func list[T any](ctx context.Context, e *Engine, of keys.Listing, prefix string, look func(names []string) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := e.store.Enter(ctx, ""); err != nil {
			yield(*new(T), err)
			return
		}
		seen := map[string]bool{}
		for _, node := range e.store.conn.Nodes() {
			for cursor, more := uint64(0), true; more; more = cursor != 0 {
				var names []string
				var err error
				if cursor, names, err = e.Names(ctx, node, of, prefix, cursor, seen); err != nil {
					yield(*new(T), err)
					return
				}
				for step := range slices.Chunk(names, ScanStep) {
					found, err := look(step)
					if err != nil {
						yield(*new(T), err)
						return
					}
					for _, f := range found {
						if !yield(f, nil) {
							return
						}
					}
				}
			}
		}
	}
}

// Names looks at the next few keys of a node, and returns the names that begin
// with prefix and are not in seen, to which it adds them: SCAN may give a key
// twice. next is 0 at the end.
func (e *Engine) Names(ctx context.Context, node Sender, of keys.Listing, prefix string, cursor uint64, seen map[string]bool) (next uint64, names []string, err error) {
	if err := e.store.Enter(ctx, ""); err != nil {
		return 0, nil, err
	}
	space := e.store.keys
	reply, err := e.store.Do(ctx, node, Command{Words: []string{
		"SCAN", strconv.FormatUint(cursor, 10), "MATCH", space.ListPattern(of, prefix), "COUNT", strconv.Itoa(ScanStep),
	}})
	if err != nil {
		return 0, nil, err
	}
	next, found, err := parseScan(reply)
	for _, key := range found {
		if name, ok := space.ListedName(of, key); ok && strings.HasPrefix(name, prefix) && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return next, names, err
}

// parseScan reads a reply of SCAN: the next cursor, 0 at the end, and keys.
func parseScan(reply any) (next uint64, keys []string, err error) {
	var cursor string
	var list []any
	ok := form.Read(reply, &cursor, &list)
	if next, err = strconv.ParseUint(cursor, 10, 64); !ok || err != nil {
		return 0, nil, form.Malformed("list", reply)
	}
	for _, item := range list {
		key, ok := item.(string)
		if !ok {
			return 0, nil, form.Malformed("list", reply)
		}
		keys = append(keys, key)
	}
	return next, keys, nil
}
