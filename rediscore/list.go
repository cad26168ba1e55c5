package rediscore

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// ScanStep is how many keys the server scans in one command of List, which takes it less than a
// millisecond.
const ScanStep = 512

// List implements driver.Lister. It finds names by their queues and by their last tokens, which the
// store remembers at least as long as a lease lives. So it leaves out a foreign client's lock if
// holdfast has not used the name within Options.TokenMemory and no holdfast client waits for it.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return func(yield func(lockinfo.LockState, error) bool) {
		many := false // whether many of the last names were used
		list(ctx, e, keys.Locks, prefix, func(names []string) (locks []lockinfo.LockState, err error) {
			locks, many, err = e.look(ctx, names, many)
			return locks, err
		})(yield)
	}
}

// look returns the locks of names. It first finds out which names are used, because that costs
// less, unless the caller expects many. many reports whether many were.
func (e *engine) look(ctx context.Context, names []string, expected bool) (locks []lockinfo.LockState, many bool, err error) {
	used := names
	if !expected {
		if used, err = e.used(ctx, names); err != nil {
			return nil, false, err
		}
	}
	locks, rest, err := e.plainLocks(ctx, used)
	many = len(locks)+len(rest) > len(names)/4
	for batch := range slices.Chunk(rest, driver.MaxBatch) {
		if err != nil {
			break
		}
		var found []Inspection
		found, err = e.InspectAll(ctx, batch, 0)
		for _, f := range found {
			// A name that cannot be inspected is not a lock now.
			if f.Err == nil && len(f.Lock.Holders)+f.Lock.QueueLength > 0 {
				locks = append(locks, f.Lock)
			}
		}
	}
	return locks, many, err
}

// used returns the names that may have a holder or a waiter.
func (e *engine) used(ctx context.Context, names []string) (some []string, err error) {
	replies, failed := evalNames(ctx, e.store, "list", e.scripts.Used, nil, names,
		func(_ string, item any) (any, error) { return item, nil })
	for i, name := range names {
		if replies[i] != int64(0) {
			some = append(some, name)
		}
	}
	return some, cmp.Or(failed...)
}

// plainLocks returns the plain locks among names. rest has the other names that may have a holder
// or a waiter.
func (e *engine) plainLocks(ctx context.Context, names []string) (locks []lockinfo.LockState, rest []string, err error) {
	replies, failed := evalNames(ctx, e.store, "list", e.scripts.List, nil, names,
		func(_ string, item any) (any, error) { return item, nil })
	for i, name := range names {
		if lock, ok := parsePlain(name, replies[i]); ok {
			locks = append(locks, lock)
		} else if replies[i] != int64(0) {
			rest = append(rest, name)
		}
	}
	return locks, rest, cmp.Or(failed...)
}

// list yields what look returns for the names that a scan finds, about ScanStep names at a time.
func list[T any](ctx context.Context, e *engine, of keys.Listing, prefix string, look func(names []string) ([]T, error)) iter.Seq2[T, error] {
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
				found, err := look(names)
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

// Names scans the next few keys of a node. It returns the names that begin with prefix and are not
// in seen, and adds them to seen, because SCAN may return a key twice. next is 0 at the end.
func (e *engine) Names(ctx context.Context, node Sender, of keys.Listing, prefix string, cursor uint64, seen map[string]bool) (next uint64, names []string, err error) {
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
