package sim

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

func hset(k *keyspace, args []string) any {
	if len(args)%2 == 0 {
		return failure("ERR wrong number of arguments for 'hset' command")
	}
	e, wrong := k.made(args[0], "hash")
	if wrong != nil {
		return wrong
	}
	added := int64(0)
	for i := 1; i < len(args); i += 2 {
		if _, known := e.hash[args[i]]; !known {
			added++
		}
		e.hash[args[i]] = args[i+1]
	}
	return added
}

func hget(k *keyspace, args []string) any {
	e, wrong := k.typed(args[0], "hash")
	if e == nil {
		return wrong
	}
	return field(e, args[1])
}

func field(e *entry, name string) any {
	if value, known := e.hash[name]; known {
		return value
	}
	return nil
}

func hmget(k *keyspace, args []string) any {
	e, wrong := k.typed(args[0], "hash")
	if wrong != nil {
		return wrong
	}
	values := make([]any, len(args)-1)
	for i, name := range args[1:] {
		if e != nil {
			values[i] = field(e, name)
		}
	}
	return values
}

func hdel(k *keyspace, args []string) any {
	e, wrong := k.typed(args[0], "hash")
	if wrong != nil || e == nil {
		return cmp.Or[any](wrong, int64(0))
	}
	n := remove(e.hash, args[1:])
	k.drop(args[0])
	return n
}

// remove deletes the names that exist, and counts them.
func remove[V any](from map[string]V, names []string) (n int64) {
	for _, name := range names {
		if _, known := from[name]; known {
			delete(from, name)
			n++
		}
	}
	return n
}

// hscan replies with all fields at once, which a server may do.
func hscan(k *keyspace, args []string) any {
	if len(args) != 2 && (len(args) != 4 || !strings.EqualFold(args[2], "COUNT")) {
		return errSyntax
	}
	e, wrong := k.typed(args[0], "hash")
	if wrong != nil {
		return wrong
	}
	found := []any{}
	if e != nil {
		for _, name := range slices.Sorted(maps.Keys(e.hash)) {
			found = append(found, name, e.hash[name])
		}
	}
	return []any{"0", found}
}

func zadd(k *keyspace, args []string) any {
	if len(args)%2 == 0 {
		return errSyntax
	}
	for i := 1; i < len(args); i += 2 {
		if _, ok := parseScore(args[i]); !ok {
			return errFloat
		}
	}
	e, wrong := k.made(args[0], "zset")
	if wrong != nil {
		return wrong
	}
	added := int64(0)
	for i := 1; i < len(args); i += 2 {
		if _, known := e.set[args[i+1]]; !known {
			added++
		}
		e.set[args[i+1]], _ = parseScore(args[i])
	}
	return added
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

func zrem(k *keyspace, args []string) any {
	e, wrong := k.typed(args[0], "zset")
	if wrong != nil || e == nil {
		return cmp.Or[any](wrong, int64(0))
	}
	n := remove(e.set, args[1:])
	k.drop(args[0])
	return n
}

func zscore(k *keyspace, args []string) any {
	e, wrong := k.typed(args[0], "zset")
	if e == nil {
		return wrong
	}
	score, known := e.set[args[1]]
	if !known {
		return nil
	}
	return formatScore(score)
}

func zmscore(k *keyspace, args []string) any {
	e, wrong := k.typed(args[0], "zset")
	if wrong != nil {
		return wrong
	}
	scores := make([]any, len(args)-1)
	for i, member := range args[1:] {
		if e == nil {
			continue
		}
		if score, known := e.set[member]; known {
			scores[i] = formatScore(score)
		}
	}
	return scores
}

// ranked returns the members by score, then by name.
func ranked(e *entry) []string {
	if e == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(e.set), func(a, b string) int {
		return cmp.Or(cmp.Compare(e.set[a], e.set[b]), cmp.Compare(a, b))
	})
}

func zrank(k *keyspace, args []string) any {
	e, wrong := k.typed(args[0], "zset")
	if wrong != nil {
		return wrong
	}
	if i := slices.Index(ranked(e), args[1]); i >= 0 {
		return int64(i)
	}
	return nil
}

func zcard(k *keyspace, args []string) any {
	e, wrong := k.typed(args[0], "zset")
	if wrong != nil || e == nil {
		return cmp.Or[any](wrong, int64(0))
	}
	return int64(len(e.set))
}

func zrange(k *keyspace, args []string) any {
	first, err1 := strconv.Atoi(args[1])
	last, err2 := strconv.Atoi(args[2])
	if err1 != nil || err2 != nil {
		return errNumber
	}
	withScores := len(args) == 4 && strings.EqualFold(args[3], "WITHSCORES")
	if len(args) > 3 && !withScores {
		return errSyntax
	}
	e, wrong := k.typed(args[0], "zset")
	if wrong != nil {
		return wrong
	}
	all := ranked(e)
	first, last = span(first, last, len(all))
	found := []any{}
	for _, member := range all[first:last] {
		found = append(found, member)
		if withScores {
			found = append(found, formatScore(e.set[member]))
		}
	}
	return found
}

// scored returns the members with scores between two limits.
func scored(k *keyspace, args []string) ([]any, any) {
	from, fromOpen := strings.CutPrefix(args[1], "(")
	to, toOpen := strings.CutPrefix(args[2], "(")
	low, ok1 := parseScore(from)
	high, ok2 := parseScore(to)
	if !ok1 || !ok2 {
		return nil, failure("ERR min or max is not a float")
	}
	e, wrong := k.typed(args[0], "zset")
	if wrong != nil {
		return nil, wrong
	}
	found := []any{}
	for _, member := range ranked(e) {
		score := e.set[member]
		if (score > low || score == low && !fromOpen) && (score < high || score == high && !toOpen) {
			found = append(found, member)
		}
	}
	return found, nil
}

func zrangeByScore(k *keyspace, args []string) any {
	withScores, from, count := false, 0, -1
	for i := 3; i < len(args); i++ {
		switch strings.ToUpper(args[i]) {
		case "WITHSCORES":
			withScores = true
		case "LIMIT":
			if i+2 >= len(args) {
				return errSyntax
			}
			var err1, err2 error
			from, err1 = strconv.Atoi(args[i+1])
			count, err2 = strconv.Atoi(args[i+2])
			if err1 != nil || err2 != nil {
				return errNumber
			}
			i += 2
		default:
			return errSyntax
		}
	}
	members, wrong := scored(k, args)
	if wrong != nil {
		return wrong
	}
	if from < 0 || from > len(members) {
		from = len(members)
	}
	members = members[from:]
	if count >= 0 && count < len(members) {
		members = members[:count]
	}
	if !withScores {
		return members
	}
	e := k.find(args[0])
	found := []any{}
	for _, member := range members {
		found = append(found, member, formatScore(e.set[member.(string)]))
	}
	return found
}

func zcount(k *keyspace, args []string) any {
	found, wrong := scored(k, args)
	if wrong != nil {
		return wrong
	}
	return int64(len(found))
}
