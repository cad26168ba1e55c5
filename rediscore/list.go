package rediscore

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// ScanStep is how many keys the server looks at in one command of List, and how
// many names are inspected in one.
const ScanStep = 128

// List implements driver.Lister. It finds names by the last tokens that the
// store remembers and by their queues, so a lock of a foreign client is listed
// only if holdfast has held it within driver.TokenMemory, or waits for it.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return func(yield func(driver.Lock, error) bool) {
		if err := e.store.Enter(ctx, ""); err != nil {
			yield(driver.Lock{}, err)
			return
		}
		seen := map[string]bool{}
		for _, node := range e.store.conn.Nodes() {
			if !e.listNode(ctx, node, prefix, seen, yield) {
				return
			}
		}
	}
}

// listNode yields the locks whose names are on one node, and reports whether
// to go on.
func (e *Engine) listNode(ctx context.Context, node Sender, prefix string, seen map[string]bool, yield func(driver.Lock, error) bool) bool {
	for cursor := uint64(0); ; {
		next, names, err := e.Names(ctx, node, prefix, cursor, seen)
		if err != nil {
			yield(driver.Lock{}, err)
			return false
		}
		if !e.listNames(ctx, names, yield) {
			return false
		}
		if cursor = next; cursor == 0 {
			return true
		}
	}
}

// listNames yields those of names that have a holder or a place, and reports
// whether to go on.
func (e *Engine) listNames(ctx context.Context, names []string, yield func(driver.Lock, error) bool) bool {
	for step := range slices.Chunk(names, ScanStep) {
		found, err := e.InspectAll(ctx, step, 0)
		if err != nil {
			yield(driver.Lock{}, err)
			return false
		}
		for _, f := range found {
			// A name that cannot be inspected is not a lock now.
			if f.Err == nil && len(f.Lock.Holders)+f.Lock.QueueLength > 0 && !yield(f.Lock, nil) {
				return false
			}
		}
	}
	return true
}

// Names looks at the next few keys of a node, and returns the names that begin
// with prefix and are not in seen, to which it adds them: SCAN may give a key
// twice. next is 0 at the end.
func (e *Engine) Names(ctx context.Context, node Sender, prefix string, cursor uint64, seen map[string]bool) (next uint64, names []string, err error) {
	if err := e.store.Enter(ctx, ""); err != nil {
		return 0, nil, err
	}
	space := e.store.keys
	reply, err := e.store.Do(ctx, node, Command{Words: []string{
		"SCAN", strconv.FormatUint(cursor, 10), "MATCH", space.ListPattern(prefix), "COUNT", strconv.Itoa(ScanStep),
	}})
	if err != nil {
		return 0, nil, err
	}
	next, found, err := parseScan(reply)
	for _, key := range found {
		if name, ok := space.ListedName(key); ok && strings.HasPrefix(name, prefix) && !seen[name] {
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
