package peer

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcdNoFsync does not wait for the disk, like the other peers.
func etcdNoFsync() Peer { return etcd("etcd", "one embedded member, fsync off", EtcdNoFsync) }

// etcdDefault keeps its locks on disk.
func etcdDefault() Peer {
	return asDefault(etcd("etcd default", "one embedded member, fsync on", Etcd))
}

// etcd is concurrency.Mutex of etcd's client. A session is a lease. All names of Try share one
// session. Each waiter has its own, because two waiters of one session would hold a lock
// together.
func etcd(name, settings string, store Store) Peer {
	return Peer{
		Name: name, Settings: settings, Store: store, Can: Takes | Waits | Keeps,
		Open: func(_ context.Context, addr string, ttl time.Duration) (Client, error) {
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
			if err != nil {
				return nil, err
			}
			c := &etcdClient{client: client}
			if seconds := int(ttl.Seconds()); seconds > 0 {
				c.opts = append(c.opts, concurrency.WithTTL(seconds))
			}
			if c.shared, err = concurrency.NewSession(client, c.opts...); err != nil {
				_ = client.Close()
				return nil, err
			}
			return c, nil
		},
	}
}

type etcdClient struct {
	client *clientv3.Client
	opts   []concurrency.SessionOption
	shared *concurrency.Session

	mu    sync.Mutex
	spare []*concurrency.Session // for waiters
}

// An etcdLock is a lock in a session. It ends with the session.
type etcdLock struct {
	client  *etcdClient
	mutex   *concurrency.Mutex
	session *concurrency.Session // of a waiter; otherwise nil
}

func (c *etcdClient) Try(ctx context.Context, name string) (Held, error) {
	l := &etcdLock{client: c, mutex: concurrency.NewMutex(c.shared, "/"+name)}
	return l, l.mutex.TryLock(ctx)
}

func (c *etcdClient) Wait(ctx context.Context, name string) (Held, error) {
	session, err := c.session()
	if err != nil {
		return nil, err
	}
	l := &etcdLock{client: c, mutex: concurrency.NewMutex(session, "/"+name), session: session}
	if err := l.mutex.Lock(ctx); err != nil {
		c.giveBack(session)
		return nil, err
	}
	return l, nil
}

// session returns a session that no waiter uses.
func (c *etcdClient) session() (*concurrency.Session, error) {
	c.mu.Lock()
	if n := len(c.spare); n > 0 {
		s := c.spare[n-1]
		c.spare = c.spare[:n-1]
		c.mu.Unlock()
		return s, nil
	}
	c.mu.Unlock()
	return concurrency.NewSession(c.client, c.opts...)
}

func (c *etcdClient) giveBack(s *concurrency.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = append(c.spare, s)
}

func (l *etcdLock) Release(ctx context.Context) error {
	err := l.mutex.Unlock(ctx)
	if l.session != nil {
		l.client.giveBack(l.session)
	}
	return err
}

// Close revokes the leases of all sessions, and closes the connection.
func (c *etcdClient) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range append(c.spare, c.shared) {
		_ = s.Close() // the lease expires
	}
	return c.client.Close()
}
