package goredislock

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// through returns a client that connects through a proxy. change, unless nil, changes its options.
func through(t *testing.T, p *faultproxy.Proxy, change func(*redis.Options)) *redis.Client {
	t.Helper()
	opts := &redis.Options{Addr: p.Addr(), ReadTimeout: 300 * time.Millisecond}
	if change != nil {
		change(opts)
	}
	c := redis.NewClient(opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestRequestsAreSentOnce checks that go-redis, which repeats a command three times by default,
// sends ours once, whatever happens to the request or its reply. The error shows that the outcome
// is unknown and that the connection was given up. The same client repeats other commands.
func TestRequestsAreSentOnce(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	admin := client(t, server, nil)
	sha := do(t, admin, "SCRIPT LOAD", "return {redis.call('INCR', KEYS[1])}").(string)
	p := faultproxy.New(t, server.Addr)
	c, err := newConn(through(t, p, nil))
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"counter"}
	for fate, name := range map[faultproxy.Fate]string{faultproxy.Reset: "reset", faultproxy.Swallow: "swallowed", faultproxy.BlackHole: "black hole"} {
		for what, ask := range map[string]func(ctx context.Context) error{
			"script": func(ctx context.Context) error { _, err := c.EvalSHA(ctx, sha, keys, nil); return err },
			"list":   func(ctx context.Context) error { _, err := c.EvalInts(ctx, sha, keys, nil, nil); return err },
			"command": func(ctx context.Context) error {
				_, err := c.Do(ctx, rediscore.Command{Words: []string{"INCR"}, Keys: keys})
				return err
			},
			"each of several": func(ctx context.Context) error {
				return c.EvalEach(ctx, []rediscore.Call{{SHA: sha, Keys: []string{"other"}}, {SHA: sha, Keys: keys}})[1].Err
			},
			"session": func(ctx context.Context) error {
				s := dedicate(t, c)
				defer s.GiveBack()
				_, err := s.EvalSHA(ctx, sha, keys, nil)
				return err
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				do(t, admin, "DEL counter")
				lost := lose(t, p, fate)
				err := ask(t.Context())
				if !errors.Is(err, rediscore.ErrGivenUp) || driver.Definite(err) {
					t.Errorf("error %v", err)
				}
				p.OnRequest(nil)
				if n := do(t, admin, "GET counter"); n != "1" || lost.Load() != 1 {
					t.Errorf("carried out %v times, sent %d times", n, lost.Load())
				}
				if err := ask(t.Context()); err != nil {
					t.Errorf("the next request: %v", err)
				}
			})
		}
	}
	t.Run("others", func(t *testing.T) {
		do(t, admin, "DEL counter")
		lost := lose(t, p, faultproxy.Reset)
		_ = c.single.Incr(t.Context(), "counter").Err()
		p.OnRequest(nil)
		if lost.Load() < 2 {
			t.Errorf("go-redis repeats nothing: sent %d times, and the test shows nothing", lost.Load())
		}
	})
}

// lose has the proxy drop the replies to commands about the counter, and counts them.
func lose(t *testing.T, p *faultproxy.Proxy, fate faultproxy.Fate) *atomic.Int32 {
	t.Helper()
	var lost atomic.Int32
	p.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		if !r.Has("counter") {
			return faultproxy.Action{}
		}
		lost.Add(1)
		return faultproxy.Action{Reply: fate}
	})
	return &lost
}

// TestReplies checks that replies have the form that rediscore.Conn describes, with both protocols,
// whatever bytes they contain.
func TestReplies(t *testing.T) {
	server := testsvc.Redis(t)
	const bytes = "\x00\xff\r\n$1\r\n\x80 z"
	for _, protocol := range []int{2, 3} {
		c, err := newConn(client(t, server, func(o *redis.Options) { o.Protocol = protocol }))
		if err != nil {
			t.Fatal(err)
		}
		pairs := any([]any{"maxmemory", "0"})
		if protocol == 3 {
			pairs = map[string]any{"maxmemory": "0"}
		}
		for _, r := range []struct {
			script string
			want   any
		}{
			{"return 7", int64(7)},
			{"return ARGV[1]", bytes},
			{"return KEYS[1]", bytes},
			{"return false", nil},
			{"return {ok = 'fine'}", "fine"},
			{"return {1, ARGV[1], {false, {}}, -9007199254740993}", []any{int64(1), bytes, []any{nil, []any{}}, int64(-9007199254740992)}},
		} {
			got, err := c.Do(t.Context(), rediscore.Command{Words: []string{"EVAL", r.script, "1"}, Keys: []string{bytes}, Args: []string{bytes}})
			if err != nil || !reflect.DeepEqual(got, r.want) {
				t.Errorf("RESP%d: %s: %#v, %v; want %#v", protocol, r.script, got, err, r.want)
			}
		}
		if got, err := c.Do(t.Context(), rediscore.Command{Words: []string{"CONFIG", "GET", "maxmemory"}}); err != nil || !reflect.DeepEqual(got, pairs) {
			t.Errorf("RESP%d: %#v, %v; want %#v", protocol, got, err, pairs)
		}
		sha, _ := c.Do(t.Context(), rediscore.Command{Words: []string{"SCRIPT", "LOAD", "return {1, -2, tonumber(ARGV[1])}"}})
		ints, err := c.EvalInts(t.Context(), sha.(string), nil, []string{"3"}, []int64{0})
		if err != nil || !reflect.DeepEqual(ints, []int64{0, 1, -2, 3}) {
			t.Errorf("RESP%d: %v, %v", protocol, ints, err)
		}
		for _, script := range []string{"return false", "return {'x'}", "return 1", "return {ok = 'x'}"} {
			sha, _ := c.Do(t.Context(), rediscore.Command{Words: []string{"SCRIPT", "LOAD", script}})
			if ints, err := c.EvalInts(t.Context(), sha.(string), nil, nil, nil); err == nil || driver.Definite(err) || len(ints) != 0 {
				t.Errorf("RESP%d: %s: %v, %v; want an error after which the outcome is unknown", protocol, script, ints, err)
			}
		}
		_, err = c.EvalSHA(t.Context(), "0000000000000000000000000000000000000000", []string{"a"}, nil)
		if got := rediscore.ServerSays(err); got != "NOSCRIPT No matching script. Please use EVAL." {
			t.Errorf("RESP%d: a script that the server does not know: %v", protocol, err)
		}
	}
}
