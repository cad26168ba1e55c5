package redislock

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// scanStep is how many keys the server looks at in one command of List, and
// how many names are inspected in one.
const scanStep = 128

// List implements driver.Lister. It finds names by the last tokens that the
// store remembers and by their queues, so a lock of a foreign client is listed
// only if holdfast has held it within driver.TokenMemory, or waits for it.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return func(yield func(driver.Lock, error) bool) {
		if err := e.enter(ctx, ""); err != nil {
			yield(driver.Lock{}, err)
			return
		}
		seen := map[string]bool{} // SCAN may give a key twice
		for _, node := range e.conn.Nodes() {
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
		next, keys, err := e.scan(ctx, node, cursor, e.keys.listPattern(prefix))
		if err != nil {
			yield(driver.Lock{}, err)
			return false
		}
		var names []string
		for _, key := range keys {
			name, ok := e.keys.listedName(key)
			if ok && strings.HasPrefix(name, prefix) && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
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
	groups := map[uint32][]string{}
	for _, name := range names {
		group := e.Route(name)
		groups[group] = append(groups[group], name)
	}
	for _, group := range groups {
		for step := range slices.Chunk(group, scanStep) {
			found, err := e.inspect(ctx, step, 0)
			if err != nil {
				yield(driver.Lock{}, err)
				return false
			}
			for _, f := range found {
				// A name that cannot be inspected is not a lock now.
				if f.err == nil && len(f.lock.Holders)+f.lock.QueueLength > 0 && !yield(f.lock, nil) {
					return false
				}
			}
		}
	}
	return true
}

// scan looks at the next few keys of a node.
func (e *Engine) scan(ctx context.Context, node Sender, cursor uint64, pattern string) (next uint64, keys []string, err error) {
	if err := e.enter(ctx, ""); err != nil {
		return 0, nil, err
	}
	scan := Command{Words: []string{"SCAN", strconv.FormatUint(cursor, 10), "MATCH", pattern, "COUNT", strconv.Itoa(scanStep)}}
	reply, err := e.ask(ctx, func() (any, error) { return node.Do(ctx, scan) })
	if err != nil {
		return 0, nil, err
	}
	return parseScan(reply)
}

// parseScan reads a reply of SCAN: the next cursor, 0 at the end, and keys.
func parseScan(reply any) (next uint64, keys []string, err error) {
	items, _ := reply.([]any)
	if len(items) != 2 {
		return 0, nil, errMalformed("list", reply)
	}
	cursor, ok1 := items[0].(string)
	list, ok2 := items[1].([]any)
	if !ok1 || !ok2 {
		return 0, nil, errMalformed("list", reply)
	}
	if next, err = strconv.ParseUint(cursor, 10, 64); err != nil {
		return 0, nil, errMalformed("list", reply)
	}
	for _, item := range list {
		key, ok := item.(string)
		if !ok {
			return 0, nil, errMalformed("list", reply)
		}
		keys = append(keys, key)
	}
	return next, keys, nil
}
