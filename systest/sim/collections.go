package sim

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// on returns the implementation of a command on a hash or a sorted set. run gets an empty one if
// the key does not exist. One that run leaves empty is deleted.
func on(kind string, run func(e *entry, args []string) any) func(*keyspace, []string) any {
	return func(k *keyspace, args []string) any {
		e := k.find(args[0])
		if e == nil || e.kind != kind {
			e = &entry{kind: kind, ends: never, hash: map[string]string{}, set: map[string]float64{}}
		}
		reply := run(e, args[1:])
		switch old := k.data[args[0]]; {
		case old != nil && old.kind != kind:
			if _, wrong := reply.(failure); !wrong {
				return errWrongType
			}
		case len(e.hash)+len(e.set) > 0:
			k.data[args[0]] = e
		default:
			delete(k.data, args[0])
		}
		return reply
	}
}

func hset(e *entry, args []string) any {
	if len(args)%2 != 0 {
		return failure("ERR wrong number of arguments for 'hset' command")
	}
	before := len(e.hash)
	for pair := range slices.Chunk(args, 2) {
		e.hash[pair[0]] = pair[1]
	}
	return int64(len(e.hash) - before)
}

func hget(e *entry, args []string) any {
	if value, known := e.hash[args[0]]; known {
		return value
	}
	return nil
}

func hmget(e *entry, args []string) any { return each(hget, e, args) }

// each calls run for each argument, and returns the replies.
func each(run func(*entry, []string) any, e *entry, args []string) any {
	replies := []any{}
	for arg := range slices.Chunk(args, 1) {
		replies = append(replies, run(e, arg))
	}
	return replies
}

func hdel(e *entry, args []string) any { return remove(e.hash, args) }

// remove deletes the names that exist, and counts them.
func remove[V any](from map[string]V, names []string) int64 {
	before := len(from)
	for _, name := range names {
		delete(from, name)
	}
	return int64(before - len(from))
}

// hscan replies with all fields at once, which a server may do.
func hscan(e *entry, args []string) any {
	if len(args) != 1 && (len(args) != 3 || !strings.EqualFold(args[1], "COUNT")) {
		return errSyntax
	}
	found := []any{}
	for _, name := range slices.Sorted(maps.Keys(e.hash)) {
		found = append(found, name, e.hash[name])
	}
	return []any{"0", found}
}

func zadd(e *entry, args []string) any {
	if len(args)%2 != 0 {
		return errSyntax
	}
	for pair := range slices.Chunk(args, 2) {
		if _, ok := parseScore(pair[0]); !ok {
			return errFloat
		}
	}
	before := len(e.set)
	for pair := range slices.Chunk(args, 2) {
		e.set[pair[1]], _ = parseScore(pair[0])
	}
	return int64(len(e.set) - before)
}

func parseScore(text string) (float64, bool) {
	switch strings.ToLower(text) {
	case "-inf":
		return math.Inf(-1), true
	case "+inf", "inf":
		return math.Inf(1), true
	}
	score, err := strconv.ParseFloat(text, 64)
	return score, err == nil && !math.IsNaN(score)
}

func formatScore(score float64) string { return strconv.FormatFloat(score, 'g', 17, 64) }

func zrem(e *entry, args []string) any { return remove(e.set, args) }

func zscore(e *entry, args []string) any {
	if score, known := e.set[args[0]]; known {
		return formatScore(score)
	}
	return nil
}

func zmscore(e *entry, args []string) any { return each(zscore, e, args) }

// ranked returns the members by score, then by name.
func ranked(e *entry) []string {
	return slices.SortedFunc(maps.Keys(e.set), func(a, b string) int {
		return cmp.Or(cmp.Compare(e.set[a], e.set[b]), cmp.Compare(a, b))
	})
}

func zrank(e *entry, args []string) any {
	if i := slices.Index(ranked(e), args[0]); i >= 0 {
		return int64(i)
	}
	return nil
}

func zcard(e *entry, _ []string) any { return int64(len(e.set)) }

func zrange(e *entry, args []string) any {
	first, last, ok := numbers(args[0], args[1])
	if !ok {
		return errNumber
	}
	withScores := len(args) == 3 && strings.EqualFold(args[2], "WITHSCORES")
	if len(args) > 2 && !withScores {
		return errSyntax
	}
	all := ranked(e)
	first, last = span(first, last, len(all))
	return listed(e, all[first:last], withScores)
}

// listed returns members, each with its score if that is wanted.
func listed(e *entry, members []string, withScores bool) any {
	found := []any{}
	for _, member := range members {
		found = append(found, member)
		if withScores {
			found = append(found, formatScore(e.set[member]))
		}
	}
	return found
}

// scored returns the members with scores between two limits. It returns false if a limit is not a
// number.
func scored(e *entry, args []string) ([]string, bool) {
	from, fromOpen := strings.CutPrefix(args[0], "(")
	to, toOpen := strings.CutPrefix(args[1], "(")
	low, ok1 := parseScore(from)
	high, ok2 := parseScore(to)
	return slices.DeleteFunc(ranked(e), func(member string) bool {
		score := e.set[member]
		return score < low || score == low && fromOpen || score > high || score == high && toOpen
	}), ok1 && ok2
}

const errLimits = failure("ERR min or max is not a float")

func zrangeByScore(e *entry, args []string) any {
	withScores, from, count := false, 0, -1
	for i := 2; i < len(args); i++ {
		switch strings.ToUpper(args[i]) {
		case "WITHSCORES":
			withScores = true
		case "LIMIT":
			if i+2 >= len(args) {
				return errSyntax
			}
			var ok bool
			if from, count, ok = numbers(args[i+1], args[i+2]); !ok {
				return errNumber
			}
			i += 2
		default:
			return errSyntax
		}
	}
	members, ok := scored(e, args)
	if !ok {
		return errLimits
	}
	if from < 0 || from > len(members) {
		from = len(members)
	}
	members = members[from:]
	if count >= 0 && count < len(members) {
		members = members[:count]
	}
	return listed(e, members, withScores)
}

func zcount(e *entry, args []string) any {
	members, ok := scored(e, args)
	if !ok {
		return errLimits
	}
	return int64(len(members))
}
