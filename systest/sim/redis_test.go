package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// callScript returns the reply to one command inside a script, converted to Lua and back.
const callScript = "return redis.pcall(unpack(ARGV))"

// TestServerAnswersAsRedis sends the same random commands to a real server and to the server in
// memory, both plain and from a script, and compares the replies.
func TestServerAnswersAsRedis(t *testing.T) {
	const steps = 10_000
	real, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{testsvc.Redis(t).Addr}, ForceSingleClient: true, DisableCache: true, ClientSetInfo: rueidis.DisableClientSetInfo,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	ours := newServer(NewScripts())
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range steps {
		args := randomCommand(r)
		request := args
		if r.IntN(2) == 0 {
			request = append([]string{"EVAL", callScript, "0"}, args...)
		}
		want := answerOf(real.Do(t.Context(), real.B().Arbitrary(request...).Build()))
		ours.mu.Lock()
		ours.tickLocked()
		got := ours.doLocked(request)
		ours.mu.Unlock()
		if a, b := normal(args[0], want), normal(args[0], got); a != b {
			t.Fatalf("step %d: %q: a real server answers %s, ours %s", i, request, a, b)
		}
	}
}

// answerOf returns a real server's reply in the form of this package. RESP3 has doubles where
// scripts have strings.
func answerOf(r rueidis.RedisResult) any {
	message, err := r.ToMessage()
	if err != nil {
		if rueidis.IsRedisNil(err) {
			return nil
		}
		return failure(err.Error())
	}
	return plain(message)
}

func plain(m rueidis.RedisMessage) any {
	switch {
	case m.IsNil():
		return nil
	case m.IsInt64():
		n, _ := m.ToInt64()
		return n
	case m.IsFloat64():
		f, _ := m.ToFloat64()
		return formatScore(f)
	case m.IsArray():
		items, _ := m.ToArray()
		list := []any{}
		for _, item := range items {
			if nested, ok := plain(item).([]any); ok {
				list = append(list, nested...) // pairs of member and score
				continue
			}
			list = append(list, plain(item))
		}
		return list
	}
	text, _ := m.ToString()
	return text
}

// normal returns a reply without permitted differences: a status is a string, a remaining time is
// approximate, the order of a hash is arbitrary, and of an error only the code counts.
func normal(command string, answer any) string {
	switch a := answer.(type) {
	case status:
		return normal(command, string(a))
	case failure:
		return "error " + codeOf(string(a))
	case int64:
		if command == "PTTL" && a > 0 {
			return fmt.Sprint("about ", (a+30_000)/60_000, " minutes")
		}
	case []any:
		var items []string
		for _, item := range a {
			nested, ok := item.([]any)
			if !ok {
				nested = []any{item}
			}
			for _, item := range nested { // as plain does
				items = append(items, normal(command, item))
			}
		}
		if command == "HSCAN" {
			slices.Sort(items)
		}
		return fmt.Sprintf("%q", items)
	}
	return fmt.Sprintf("%T %v", answer, answer)
}

// codeOf returns the code of an error, which rueidis leaves out if it is ERR.
func codeOf(text string) string {
	if code, _, _ := strings.Cut(text, " "); code == "WRONGTYPE" {
		return code
	}
	return "ERR"
}

// randomCommand returns a random command of those that scripts use. It uses few keys, so that kinds
// clash, and few members, so that they repeat. Expiries are in the distant past or future.
func randomCommand(r *rand.Rand) []string {
	key := func() string { return pick(r, "a", "b", "c", "d", "e") }
	word := func() string { return pick(r, "x", "y", "z", "xx", "") }
	index := func() string { return strconv.Itoa(r.IntN(9) - 4) }
	score := func() string { return pick(r, "1", "2", "2.5", "-3", "1766620809749", "1766620809750.5") }
	edge := func() string { return pick(r, "-inf", "+inf", "2", "(2", "(1766620809749", "bad") }
	span := pick(r, "3600000", "7200000", "-5", "0", "many")
	at := pick(r, strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), "1", "12x")
	switch pick(r, commandNames...) {
	case "GET":
		return []string{"GET", key()}
	case "MGET":
		return []string{"MGET", key(), key()}
	case "SET":
		return append([]string{"SET", key(), word()}, pick(r, nil, []string{"PX", span}, []string{"PXAT", at}, []string{"KEEPTTL"}, []string{"PX"})...)
	case "GETRANGE":
		return []string{"GETRANGE", key(), index(), index()}
	case "DEL":
		return []string{"DEL", key(), key()}
	case "EXISTS", "UNLINK":
		return []string{pick(r, "EXISTS", "UNLINK"), key(), key()}
	case "HSCAN":
		return []string{"HSCAN", key(), "0", "COUNT", "100"}
	case "TYPE", "PTTL", "PERSIST", "ZCARD", "STRLEN":
		return []string{pick(r, "TYPE", "PTTL", "PERSIST", "ZCARD", "STRLEN"), key()}
	case "PEXPIRE":
		return []string{"PEXPIRE", key(), span}
	case "PEXPIREAT":
		return []string{"PEXPIREAT", key(), at}
	case "HSET":
		return append([]string{"HSET", key(), word(), word()}, pick(r, nil, []string{"x"}, []string{"y", "2"})...)
	case "HGET":
		return []string{"HGET", key(), word()}
	case "HMGET", "HDEL", "ZREM", "ZMSCORE":
		return []string{pick(r, "HMGET", "HDEL", "ZREM", "ZMSCORE"), key(), word(), word()}
	case "ZADD":
		return append([]string{"ZADD", key(), pick(r, score(), score(), "bad"), word()}, pick(r, nil, []string{score(), word()}, []string{score()})...)
	case "ZSCORE", "ZRANK":
		return []string{pick(r, "ZSCORE", "ZRANK"), key(), word()}
	case "ZRANGE":
		return append([]string{"ZRANGE", key(), index(), index()}, pick(r, nil, []string{"WITHSCORES"})...)
	case "ZCOUNT":
		return []string{"ZCOUNT", key(), edge(), edge()}
	}
	return append([]string{"ZRANGEBYSCORE", key(), edge(), edge()},
		pick(r, nil, []string{"WITHSCORES"}, []string{"LIMIT", index(), index()}, []string{"WITHSCORES", "LIMIT", "0", "2"}, []string{"LIMIT", "1"})...)
}

var commandNames = []string{
	"GET", "MGET", "SET", "SET", "GETRANGE", "DEL", "EXISTS", "TYPE", "PTTL", "PERSIST", "ZCARD", "STRLEN", "HSCAN", "UNLINK", "ZMSCORE", "PEXPIRE", "PEXPIREAT",
	"HSET", "HSET", "HGET", "HMGET", "HDEL", "ZREM", "ZADD", "ZADD", "ZADD", "ZSCORE", "ZRANK", "ZRANGE", "ZCOUNT", "ZRANGEBYSCORE",
}
