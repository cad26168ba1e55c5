package goredislock

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

const secret = "s3cr3t-PASS"

// calls returns functions that send one request of each kind, and return its error.
func calls(ctx context.Context, e *Engine, name string) map[string]func() error {
	all := drivertest.Calls(ctx, e, name)
	all["acquire, behind replicas"] = func() error {
		req := drivertest.Request(name, time.Minute)
		req.Replicas = 1
		_, err := e.Acquire(ctx, req)
		return err
	}
	all["diagnose"] = func() error {
		_, err := e.Diagnose(ctx, driver.DiagnoseRequest{TTL: time.Minute})
		return err
	}
	return all
}

// TestRefusals checks that an invalid request returns the documented error, and leaves nothing in
// the store.
func TestRefusals(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	admin := client(t, server, nil)
	empty := func(t *testing.T, c *redis.Client) {
		t.Helper()
		if n := do(t, c, "DBSIZE"); n != int64(0) {
			t.Errorf("%d keys are left", n)
		}
	}
	all := func(t *testing.T, e *Engine, want error, words string) {
		t.Helper()
		for what, call := range calls(t.Context(), e, "a") {
			err := call()
			drivertest.WantIs(t, what, err, want)
			if err != nil && (!strings.Contains(err.Error(), words) || strings.Contains(err.Error(), secret)) {
				t.Errorf("%s: %v; want %q in it, and no password", what, err, words)
			}
		}
		empty(t, admin)
	}
	t.Run("closed client", func(t *testing.T) {
		c := client(t, server, nil)
		e := engine(t, c, nil)
		_ = c.Close()
		all(t, e, driver.ErrClosed, "the client is")
	})
	t.Run("closed engine", func(t *testing.T) {
		e := engine(t, client(t, server, nil), nil)
		_ = e.Close()
		all(t, e, driver.ErrClosed, "")
	})
	t.Run("nobody there", func(t *testing.T) {
		e := engine(t, client(t, server, func(o *redis.Options) { o.Addr, o.DialerRetries = "127.0.0.1:1", 1 }), nil)
		all(t, e, driver.ErrUnavailable, "cannot connect")
	})
	t.Run("no sentinel knows the master", func(t *testing.T) {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}, DialerRetries: 1})
		t.Cleanup(func() { _ = c.Close() })
		all(t, engine(t, c, nil), driver.ErrUnavailable, "cannot connect")
	})
	t.Run("no node of the cluster", func(t *testing.T) {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, DialerRetries: 1})
		t.Cleanup(func() { _ = c.Close() })
		for what, call := range calls(t.Context(), engine(t, c, nil), "a") {
			if err := call(); what != "list" { // without nodes there is nothing to list
				drivertest.WantIs(t, what, err, driver.ErrUnavailable)
			}
		}
	})
	t.Run("wrong password", func(t *testing.T) {
		e := engine(t, client(t, server, func(o *redis.Options) { o.Username, o.Password = "app", secret }), nil)
		for what, call := range calls(t.Context(), e, "a") {
			if what != "diagnose" { // a refusal is an answer
				err := call()
				drivertest.WantIs(t, what, err, driver.ErrPermission)
				if err != nil && (!strings.Contains(err.Error(), "check the user name and the password") || strings.Contains(err.Error(), secret)) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		empty(t, admin)
	})
	t.Run("no scripts", func(t *testing.T) {
		do(t, admin, "ACL SETUSER app reset on >"+secret+" ~* &* +@all -@scripting -scan -del")
		defer do(t, admin, "ACL DELUSER app")
		e := engine(t, client(t, server, func(o *redis.Options) { o.Username, o.Password = "app", secret }), nil)
		for what, call := range calls(t.Context(), e, "a") {
			if what != "diagnose" { // a diagnosis finds the problem
				drivertest.WantIs(t, what, call(), driver.ErrPermission)
			}
		}
		empty(t, admin)
	})
	t.Run("reserved name", func(t *testing.T) {
		for what, call := range calls(t.Context(), engine(t, admin, nil), "holdfast:{x}:fence:y") {
			if what != "list" && what != "diagnose" {
				drivertest.WantIs(t, what, call(), driver.ErrInvalid)
			}
		}
	})
	t.Run("read-only replica", func(t *testing.T) {
		replica := testsvc.Redis(t, "--replicaof", "127.0.0.1", fmt.Sprint(server.Port()))
		on := client(t, replica, nil)
		drivertest.Eventually(t, "the replica is in step", func() bool {
			return strings.Contains(do(t, on, "INFO replication").(string), "master_link_status:up")
		})
		e := engine(t, on, nil)
		_, err := e.Acquire(t.Context(), drivertest.Request("a", time.Minute))
		drivertest.WantIs(t, "acquire on a replica", err, driver.ErrUnavailable)
		if err == nil || !strings.Contains(err.Error(), "is a read-only replica: use the master's address") {
			t.Errorf("%v", err)
		}
		empty(t, on)
	})
}

// TestRightsOfOneUser checks that the documented rights suffice for all requests of an engine on
// go-redis.
func TestRightsOfOneUser(t *testing.T) {
	server := testsvc.Redis(t)
	do(t, client(t, server, nil), "ACL SETUSER app reset on >"+secret+" ~app:* &app:* +evalsha +eval +exists +get +set +del +pttl +pexpire +time +scan"+
		" +mget +unlink +pexpireat +zadd +zrem +zcard +zcount +zscore +zmscore +zrank +zrange +zrangebyscore +hget +hmget +hset +hdel +hscan +subscribe +publish")
	c := client(t, server, func(o *redis.Options) { o.Username, o.Password = "app", secret })
	e := engine(t, c, &Options{Prefix: "app:"})
	held := drivertest.Request("a", time.Minute)
	drivertest.Granted(t, e, held)
	_, w := drivertest.Queued(t, e, "a", time.Minute)
	drivertest.Eventually(t, "the subscription", func() bool { return c.PoolStats().PubSubStats.Active == 1 })
	drivertest.Release(t, e, held)
	drivertest.HandedOver(t, w)
}
