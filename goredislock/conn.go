package goredislock

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// byOthers is the address in the options of a go-redis client whose server is named by sentinels.
const byOthers = "FailoverClient"

// A conn is the caller's client as a rediscore.Conn.
type conn struct {
	sender
	single  *redis.Client // one of the two is nil
	cluster *redis.ClusterClient
}

// newConn returns the client as a Conn, or an error that says why it cannot keep locks.
func newConn(client redis.UniversalClient) (*conn, error) {
	refused := func(why string) (*conn, error) {
		return nil, fmt.Errorf("%w client: %s", driver.ErrInvalid, why)
	}
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return refused("it is nil")
	}
	c := &conn{}
	var readTimeout time.Duration
	switch client := client.(type) {
	case *redis.Client:
		c.single, readTimeout = client, client.Options().ReadTimeout
		c.sender = sender{on: client}
	case *redis.ClusterClient:
		if client.Options().ClusterSlots != nil {
			return refused("a function names the slots of its cluster (NewFailoverClusterClient), so no server corrects it when it asks the wrong one: use NewFailoverClient or NewClusterClient")
		}
		c.cluster, readTimeout = client, client.Options().ReadTimeout
		c.sender = sender{on: client, failed: func() { client.ReloadState(context.Background()) }}
	case *redis.Ring:
		return refused("a Ring asks another server for a name when it does not reach the first, so two could get the lock: use a client of one server, of sentinels or of a cluster")
	default:
		return refused(fmt.Sprintf("a %T does not tell how its servers belong together: use a *redis.Client or a *redis.ClusterClient", client))
	}
	if readTimeout <= 0 {
		return refused("it has no ReadTimeout, so a connection that goes silent would be waited for without end: set one, a third of the shortest TTL at most")
	}
	return c, nil
}

// Do implements rediscore.Sender. A cluster client may have a resolver that asks the servers how to
// route commands. It would split a command with several keys, and can merge the replies only for
// its own types. So Do sends such a command to the node that has its keys, which are in one slot.
// If that node redirects it, the client sends it.
func (c *conn) Do(ctx context.Context, command rediscore.Command) (any, error) {
	if c.cluster == nil || len(command.Keys) == 0 || !slices.Contains(split, command.Words[0]) {
		return c.sender.Do(ctx, command)
	}
	node, err := c.cluster.MasterForKey(ctx, command.Keys[0])
	if err != nil {
		return nil, clientError(err)
	}
	reply, err := sender{node, c.failed}.Do(ctx, command)
	if code, _, _ := strings.Cut(rediscore.ServerSays(err), " "); code == "MOVED" || code == "ASK" {
		return c.sender.Do(ctx, command)
	}
	return reply, err
}

// split has the commands of holdfast whose keys may be in different slots.
var split = []string{"DEL", "UNLINK", "EXISTS", "MGET"}

// Mode implements rediscore.Conn.
func (c *conn) Mode() rediscore.Mode {
	switch {
	case c.cluster != nil:
		return rediscore.InCluster
	case c.single.Options().Addr == byOthers:
		return rediscore.BySentinel
	}
	return rediscore.OneServer
}

// database returns the number of the database that the client selects. A cluster has 0.
func (c *conn) database() int {
	if c.cluster != nil {
		return 0
	}
	return c.single.Options().DB
}

// nodesLimit bounds listing the nodes of a cluster.
const nodesLimit = 2 * time.Second

// Nodes implements rediscore.Conn.
func (c *conn) Nodes() map[string]rediscore.Conn {
	switch {
	case c.Mode() == rediscore.BySentinel:
		return map[string]rediscore.Conn{"master": c}
	case c.cluster == nil:
		return map[string]rediscore.Conn{c.single.Options().Addr: c}
	}
	ctx, cancel := context.WithTimeout(context.Background(), nodesLimit)
	defer cancel()
	var mu sync.Mutex
	nodes := map[string]rediscore.Conn{}
	// After an error the nodes are unknown, and there are none.
	_ = c.cluster.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes[node.Options().Addr] = &conn{sender: sender{on: node, failed: c.failed}, single: node}
		return nil
	})
	return nodes
}

// subscriber returns a subscription, which will connect outside the pool.
func (c *conn) subscriber() *redis.PubSub {
	if c.cluster != nil {
		return c.cluster.Subscribe(context.Background())
	}
	return c.single.Subscribe(context.Background())
}

// Dedicate implements rediscore.Conn.
func (c *conn) Dedicate(context.Context) (rediscore.Session, error) { return &session{store: c}, nil }

// Close implements rediscore.Conn. Sessions close their own connections; all others belong to the
// caller's client.
func (c *conn) Close() {}
