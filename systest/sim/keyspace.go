package sim

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The replies of commands: int64, string, nil, []any, status or failure.
type (
	status  string // such as OK
	failure string // an error: its code and its text
)

const (
	errWrongType = failure("WRONGTYPE Operation against a key holding the wrong kind of value")
	errSyntax    = failure("ERR syntax error")
	errNumber    = failure("ERR value is not an integer or out of range")
	errFloat     = failure("ERR value is not a valid float")
)

// A keyspace has keys and their expiries. Its time changes only when clock is set, so that
// nothing expires in the middle of a script.
type keyspace struct {
	data  map[string]*entry
	clock int64 // microseconds since 1970
}

// An entry is the value of one key. Exactly one of text, hash and set is in use, by kind.
type entry struct {
	kind string // the reply to TYPE
	text string
	hash map[string]string
	set  map[string]float64
	ends int64 // ms since 1970, or never
}

const never = int64(-1)

func newKeyspace() *keyspace { return &keyspace{data: map[string]*entry{}} }

func (k *keyspace) millis() int64 { return k.clock / 1000 }

// find returns the live entry of a key, or nil.
func (k *keyspace) find(key string) *entry {
	e := k.data[key]
	if e != nil && e.ends != never && k.millis() > e.ends {
		delete(k.data, key)
		return nil
	}
	return e
}

// text returns the text of a key, and whether the key exists. wrong is an error if the value is of
// another kind.
func (k *keyspace) text(key string) (text string, known bool, wrong any) {
	e := k.find(key)
	switch {
	case e == nil:
		return "", false, nil
	case e.kind != "string":
		return "", false, errWrongType
	}
	return e.text, true, nil
}

// keys returns the live keys in order.
func (k *keyspace) keys() []string {
	for key := range k.data {
		k.find(key)
	}
	return slices.Sorted(maps.Keys(k.data))
}

// A command is the implementation of one command.
type command struct {
	least int // number of arguments
	run   func(*keyspace, []string) any
}

var commands = map[string]command{
	"GET": {1, get}, "MGET": {1, mget}, "SET": {2, set}, "GETRANGE": {3, getRange}, "STRLEN": {1, strLen}, "DEL": {1, del}, "UNLINK": {1, del}, "EXISTS": {1, exists}, "TYPE": {1, typeOf},
	"PTTL": {1, pttl}, "PEXPIRE": {2, pexpire}, "PEXPIREAT": {2, pexpireAt}, "PERSIST": {1, persist},
	"TIME": {0, timeOf}, "SCAN": {1, scan}, "FLUSHALL": {0, flush},
	"HSET": {3, on("hash", hset)}, "HGET": {2, on("hash", hget)}, "HMGET": {2, on("hash", hmget)}, "HDEL": {2, on("hash", hdel)}, "HSCAN": {2, on("hash", hscan)},
	"ZADD": {3, on("zset", zadd)}, "ZREM": {2, on("zset", zrem)}, "ZSCORE": {2, on("zset", zscore)}, "ZMSCORE": {2, on("zset", zmscore)}, "ZRANK": {2, on("zset", zrank)}, "ZCARD": {1, on("zset", zcard)},
	"ZRANGE": {3, on("zset", zrange)}, "ZRANGEBYSCORE": {3, on("zset", zrangeByScore)}, "ZCOUNT": {3, on("zset", zcount)},
}

// do runs one command.
func (k *keyspace) do(args []string) any {
	c, ok := commands[strings.ToUpper(args[0])]
	if !ok {
		return failure("ERR unknown command '" + args[0] + "'")
	}
	if len(args)-1 < c.least {
		return failure("ERR wrong number of arguments for '" + strings.ToLower(args[0]) + "' command")
	}
	return c.run(k, args[1:])
}

func get(k *keyspace, args []string) any {
	text, known, wrong := k.text(args[0])
	if !known {
		return wrong
	}
	return text
}

// mget returns nil for a key whose value is not a string.
func mget(k *keyspace, args []string) any {
	all := make([]any, len(args))
	for i, key := range args {
		if text, known, _ := k.text(key); known {
			all[i] = text
		}
	}
	return all
}

func set(k *keyspace, args []string) any {
	ends, keep := never, false
	for i := 2; i < len(args); i++ {
		switch option := strings.ToUpper(args[i]); option {
		case "KEEPTTL":
			keep = true
		case "PX", "PXAT":
			if i++; i == len(args) {
				return errSyntax
			}
			n, err := strconv.ParseInt(args[i], 10, 64)
			switch {
			case err != nil:
				return errNumber
			case n <= 0:
				return failure("ERR invalid expire time in 'set' command")
			case option == "PX":
				n += k.millis()
			}
			ends = n
		default:
			return errSyntax
		}
	}
	if e := k.find(args[0]); e != nil && keep {
		ends = e.ends
	}
	k.data[args[0]] = &entry{kind: "string", text: args[1], ends: ends}
	return status("OK")
}

func getRange(k *keyspace, args []string) any {
	first, last, ok := numbers(args[1], args[2])
	if !ok {
		return errNumber
	}
	text, _, wrong := k.text(args[0])
	if wrong != nil {
		return wrong
	}
	if last < 0 && (first >= 0 || first <= last) {
		last = max(last+len(text), 0) // Redis treats an end before the first byte as the first byte
	}
	first, last = span(first, last, len(text))
	return text[first:last]
}

// numbers parses two numbers.
func numbers(a, b string) (x, y int, ok bool) {
	x, err1 := strconv.Atoi(a)
	y, err2 := strconv.Atoi(b)
	return x, y, err1 == nil && err2 == nil
}

func strLen(k *keyspace, args []string) any {
	text, _, wrong := k.text(args[0])
	if wrong != nil {
		return wrong
	}
	return int64(len(text))
}

// span turns a range that may count from the end into a range of a slice of n.
func span(first, last, n int) (from, to int) {
	if first < 0 {
		first = max(0, first+n)
	}
	if last < 0 {
		last += n
	}
	last = min(last+1, n)
	if first >= last {
		return 0, 0
	}
	return first, last
}

func del(k *keyspace, args []string) any {
	for _, key := range args {
		k.find(key) // deletes it if it has expired
	}
	return remove(k.data, args)
}

func exists(k *keyspace, args []string) any {
	n := int64(0)
	for _, key := range args {
		if k.find(key) != nil {
			n++
		}
	}
	return n
}

func typeOf(k *keyspace, args []string) any {
	if e := k.find(args[0]); e != nil {
		return status(e.kind)
	}
	return status("none")
}

func pttl(k *keyspace, args []string) any {
	e := k.find(args[0])
	switch {
	case e == nil:
		return int64(-2)
	case e.ends == never:
		return int64(-1)
	}
	return e.ends - k.millis()
}

func pexpire(k *keyspace, args []string) any {
	return k.expire(args, k.millis())
}

func pexpireAt(k *keyspace, args []string) any { return k.expire(args, 0) }

// expire sets the expiry of a key to a time after from. An expiry in the past deletes the key.
func (k *keyspace) expire(args []string, from int64) any {
	n, err := strconv.ParseInt(args[1], 10, 64)
	e, at := k.find(args[0]), from+n
	switch {
	case err != nil:
		return errNumber
	case e == nil:
		return int64(0)
	case at <= k.millis():
		delete(k.data, args[0])
	default:
		e.ends = at
	}
	return int64(1)
}

func persist(k *keyspace, args []string) any {
	e := k.find(args[0])
	if e == nil || e.ends == never {
		return int64(0)
	}
	e.ends = never
	return int64(1)
}

func timeOf(k *keyspace, _ []string) any {
	return []any{strconv.FormatInt(k.clock/1e6, 10), strconv.FormatInt(k.clock%1e6, 10)}
}

func flush(k *keyspace, _ []string) any {
	clear(k.data)
	return status("OK")
}

// scan replies with all keys at once, which a server may do.
func scan(k *keyspace, args []string) any {
	pattern := "*"
	for i := 1; i+1 < len(args); i += 2 {
		if strings.EqualFold(args[i], "MATCH") {
			pattern = args[i+1]
		}
	}
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") } // path.Match stops at slashes
	found := []any{}
	for _, key := range k.keys() {
		if ok, err := path.Match(flat(pattern), flat(key)); ok && err == nil {
			found = append(found, key)
		}
	}
	return []any{"0", found}
}
