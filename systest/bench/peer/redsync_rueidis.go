package peer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4/redis"
	"github.com/redis/rueidis"
)

// openRueidisPool returns a pool of redsync on rueidis itself. redsync's own pool uses
// rueidiscompat, which converts go-redis commands to rueidis commands and is a little slower.
func openRueidisPool(addr string) (redis.Pool, func() error, error) {
	conn, err := dialRueidis(addr)
	if err != nil {
		return nil, nil, err
	}
	return rueidisPool{conn}, func() error { conn.Close(); return nil }, nil
}

type rueidisPool struct{ client rueidis.Client }

// A rueidisConn executes requests of redsync under one context.
type rueidisConn struct {
	client rueidis.Client
	ctx    context.Context
}

func (p rueidisPool) Get(ctx context.Context) (redis.Conn, error) {
	return &rueidisConn{p.client, ctx}, nil
}

func (c *rueidisConn) Get(name string) (string, error) {
	text, err := c.client.Do(c.ctx, c.client.B().Get().Key(name).Build()).ToString()
	return text, orNil(err)
}

func (c *rueidisConn) Set(name, value string) (bool, error) {
	err := c.client.Do(c.ctx, c.client.B().Set().Key(name).Value(value).Build()).Error()
	return err == nil, err
}

func (c *rueidisConn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	err := c.client.Do(c.ctx, c.client.B().Set().Key(name).Value(value).Nx().Px(expiry).Build()).Error()
	return err == nil, orNil(err)
}

func (c *rueidisConn) PTTL(name string) (time.Duration, error) {
	ms, err := c.client.Do(c.ctx, c.client.B().Pttl().Key(name).Build()).AsInt64()
	return time.Duration(ms) * time.Millisecond, err
}

func (c *rueidisConn) Eval(script *redis.Script, keysAndArgs ...any) (any, error) {
	words := make([]string, len(keysAndArgs))
	for i, word := range keysAndArgs {
		if text, ok := word.(string); ok {
			words[i] = text
		} else {
			words[i] = fmt.Sprint(word)
		}
	}
	keys, args := words[:script.KeyCount], words[script.KeyCount:]
	n := int64(len(keys))
	reply, err := c.client.Do(c.ctx, c.client.B().Evalsha().Sha1(script.Hash).Numkeys(n).Key(keys...).Arg(args...).Build()).ToAny()
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		reply, err = c.client.Do(c.ctx, c.client.B().Eval().Script(script.Src).Numkeys(n).Key(keys...).Arg(args...).Build()).ToAny()
	}
	return reply, orNil(err)
}

func (c *rueidisConn) ScriptLoad(script *redis.Script) error {
	hash, err := c.client.Do(c.ctx, c.client.B().ScriptLoad().Script(script.Src).Build()).ToString()
	if err == nil {
		script.Hash = hash
	}
	return err
}

func (c *rueidisConn) Close() error { return nil }

// orNil returns err unless it is redis.Nil.
func orNil(err error) error {
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}
