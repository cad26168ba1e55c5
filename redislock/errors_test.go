package redislock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

const secret = "s3cr3t-PASS"

// wantIs fails t unless err is exactly one of the driver's errors, want, and contains no secret.
func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("%s: the error tells the password: %v", what, err)
	}
	drivertest.WantIs(t, what, err, want)
}

// wantText fails t unless err contains the advice.
func wantText(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v does not say %q", err, want)
	}
}

// TestRefusals checks the errors for the server's refusals.
func TestRefusals(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)

	t.Run("wrong type", func(t *testing.T) {
		do(t, admin, "FLUSHALL")
		do(t, admin, "LPUSH t x")
		want := map[string]error{
			"acquire": driver.ErrKindMismatch, "acquire all": driver.ErrKindMismatch,
			"refresh": driver.ErrKindMismatch, "inspect": driver.ErrKindMismatch,
			// Whatever the value is, it is not the lease.
			"extend": driver.ErrLost, "release": driver.ErrLost, "downgrade": driver.ErrLost, "complete": driver.ErrLost,
		}
		for what, call := range drivertest.Calls(t.Context(), open(t, server.URL), "t") {
			wantIs(t, what, call(), want[what])
		}
	})
	t.Run("bad counter", func(t *testing.T) {
		e := open(t, server.URL)
		for _, bad := range []string{"x", "", "-1", "1e3", "0x10", "1 ", "9007199254740991", "99999999999999999999999", "nan"} {
			do(t, admin, "SET", keyspace{}.fence("t2"), bad)
			_, err := e.Acquire(t.Context(), drivertest.Request("t2", time.Minute))
			wantIs(t, "acquire", err, driver.ErrKindMismatch)
			if n := number(t, admin, "EXISTS t2"); n != 0 {
				t.Errorf("counter %q: a lease was recorded", bad)
			}
		}
		do(t, admin, "DEL", keyspace{}.fence("t2"))
		do(t, admin, "LPUSH", keyspace{}.fence("t2"), "x")
		_, err := e.Acquire(t.Context(), drivertest.Request("t2", time.Minute))
		wantIs(t, "acquire", err, driver.ErrKindMismatch)
	})
	t.Run("reserved name", func(t *testing.T) {
		for what, call := range drivertest.Calls(t.Context(), open(t, server.URL), "holdfast:{x}:fence:y") {
			if what != "list" {
				wantIs(t, what, call(), driver.ErrInvalid)
			}
		}
	})
	t.Run("bad prefix", func(t *testing.T) {
		_, err := New(admin, &Options{Prefix: "a{b"})
		wantIs(t, "New", err, driver.ErrInvalid)
	})
	t.Run("closed", func(t *testing.T) {
		e := open(t, server.URL)
		ready := drivertest.Calls(t.Context(), e, "closed")
		_ = e.Close()
		for what, call := range ready {
			wantIs(t, what, call(), driver.ErrClosed)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("memory is full", func(t *testing.T) {
		do(t, admin, "FLUSHALL")
		e := open(t, server.URL)
		req := drivertest.Request("kept", time.Minute)
		drivertest.Granted(t, e, req)
		do(t, admin, "CONFIG SET maxmemory 1")
		defer do(t, admin, "CONFIG SET maxmemory 0")
		_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
		wantIs(t, "acquire", err, driver.ErrUnavailable)
		wantText(t, err, "raise maxmemory")
		errs := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "kept", LeaseID: req.LeaseID, TTL: time.Minute}})
		if errs[0] != nil {
			t.Errorf("the usual renewal needs memory: %v", errs[0])
		}
		errs = e.Extend(t.Context(), []driver.ExtendRequest{{Name: "kept", LeaseID: req.LeaseID, TTL: time.Hour}})
		if errs[0] != nil {
			t.Errorf("extend by another TTL: %v", errs[0])
		}
		err = e.Release(t.Context(), driver.ReleaseRequest{Name: "kept", LeaseID: req.LeaseID, Cancel: true})
		if err == nil {
			t.Error("the cancel was not recorded, and release says nothing")
		}
		wantIs(t, "release without a tombstone", err, nil)
		if n := number(t, admin, "EXISTS kept"); n != 0 {
			t.Error("the full server kept the lease")
		}
	})
}

func TestReadOnlyReplica(t *testing.T) {
	t.Parallel()
	master := testsvc.Redis(t)
	replica := testsvc.Redis(t, "--replicaof", "127.0.0.1", fmt.Sprint(master.Port()))
	onReplica := plain(t, replica)
	drivertest.Eventually(t, "the replica is in step", func() bool {
		return strings.Contains(text(t, onReplica, "INFO replication"), "master_link_status:up")
	})
	e := open(t, replica.URL)
	_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
	wantIs(t, "acquire on a replica", err, driver.ErrUnavailable)
	wantText(t, err, "is a read-only replica: use the master's address")
	if n := number(t, onReplica, "DBSIZE"); n != 0 {
		t.Errorf("the replica has %d keys", n)
	}
}

// TestRights runs the engine as users with fewer and fewer rights.
func TestRights(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	const documented = "+evalsha +eval +exists +get +mget +getrange +strlen +set +del +pttl +pexpire +pexpireat +time +scan +subscribe +publish" +
		" +zadd +zrem +zcard +zcount +zscore +zrank +zmscore +zrange +zrangebyscore +hget +hmget +hset +hdel +hscan +unlink"
	engine := func(t *testing.T, rights string) *Engine {
		t.Helper()
		do(t, admin, "ACL SETUSER app reset on >"+secret+" "+rights)
		return open(t, "redis://app:"+secret+"@"+server.Addr+"?prefix=app:")
	}
	t.Run("documented", func(t *testing.T) {
		e := engine(t, "~app:* &app:* "+documented)
		useAll(t, e, func() { do(t, admin, "DEL app:t") })
	})
	t.Run("no channels", func(t *testing.T) {
		e := engine(t, "~app:* resetchannels "+documented)
		req := drivertest.Request("t", time.Minute)
		drivertest.Granted(t, e, req)
		if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID}); err != nil {
			t.Errorf("release without the right to publish: %v", err)
		}
		drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	})
	t.Run("no right to hand over", func(t *testing.T) {
		e := engine(t, "~app:* &app:* "+documented)
		holder := drivertest.Request("h", time.Minute)
		drivertest.Granted(t, e, holder)
		waiter := drivertest.Request("h", time.Minute)
		waiter = queued(t, e, waiter, time.Minute, 1)
		do(t, admin, "ACL SETUSER app -zrange")
		// A cancel uses the full script, which reads the queue when the lease has ended.
		if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "h", LeaseID: holder.LeaseID, Cancel: true}); err != nil {
			t.Errorf("the lease has ended, and release says %v", err)
		}
		wantIs(t, "refresh", refresh(t, e, waiter).Err, driver.ErrPermission)
		do(t, admin, "ACL SETUSER app +zrange")
		handed(t, e, waiter)
	})
	t.Run("other keys", func(t *testing.T) {
		for what, call := range drivertest.Calls(t.Context(), engine(t, "~other:* &app:* "+documented), "t") {
			if what != "watch" && what != "list" {
				wantIs(t, what, call(), driver.ErrPermission)
			}
		}
	})
	t.Run("no scripts", func(t *testing.T) {
		for what, call := range drivertest.Calls(t.Context(), engine(t, "~app:* &app:* +@all -@scripting -scan -del"), "t") {
			wantIs(t, what, call(), driver.ErrPermission)
		}
	})
	t.Run("no writes inside scripts", func(t *testing.T) {
		e := engine(t, "~app:* &app:* "+documented+" -time")
		_, err := e.Acquire(t.Context(), drivertest.Request("fresh", time.Minute))
		wantIs(t, "acquire", err, driver.ErrPermission)
	})
}

// useAll makes an engine run every command of its scripts.
func useAll(t *testing.T, e *Engine, deleteByHand func()) {
	t.Helper()
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	ok("extend", extend(t, e, holder, time.Hour))
	reader, writer := shared("t", time.Minute), drivertest.Request("t", time.Minute)
	w := e.Watch(reader.LeaseID)
	defer w.Stop()
	reader = queued(t, e, reader, time.Minute, 1)
	told(t, w) // the subscription exists
	writer = queued(t, e, writer, time.Minute, 2)
	ok("downgrade", e.Downgrade(t.Context(), driver.DowngradeRequest{Name: "t", LeaseID: holder.LeaseID}))
	if notice := told(t, w); notice.Token == 0 {
		t.Error("the hand-over was not reported")
	}
	handed(t, e, reader)
	stillWaits(t, e, writer, 1)
	ok("extend", extend(t, e, reader, time.Hour))
	lock, err := e.Inspect(t.Context(), "t")
	ok("inspect", err)
	if len(lock.Holders) != 2 || len(lock.Queue) != 1 {
		t.Errorf("inspect: %+v", lock)
	}
	for _, err := range e.List(t.Context(), "") {
		ok("list", err)
	}
	deleteByHand()
	handed(t, e, writer)
	ok("complete", e.Complete(t.Context(), driver.CompleteRequest{Name: "t", LeaseID: writer.LeaseID, Retention: time.Minute}))
	ok("complete again", e.Complete(t.Context(), driver.CompleteRequest{Name: "t", LeaseID: writer.LeaseID, Retention: time.Minute}))
	_, found, err := e.Recall(t.Context(), "t")
	ok("recall", err)
	forgotten, err := e.Forget(t.Context(), "t")
	ok("forget", err)
	if !found || !forgotten {
		t.Errorf("the record was found: %v, and by forget: %v", found, forgotten)
	}
	last := permits("t", 1, time.Minute)
	all, err := e.AcquireAll(t.Context(), []driver.AcquireRequest{last})
	ok("acquire all", err)
	if all.Outcome != driver.Granted {
		t.Errorf("acquire all: %+v", all)
	}
	ok("release", e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: last.LeaseID, Cancel: true}))
}

// TestNilClient checks that nil in place of a client is refused.
func TestNilClient(t *testing.T) {
	e, err := New(nil, nil)
	wantIs(t, "New", err, driver.ErrInvalid)
	wantText(t, err, "client: it is nil")
	if e != nil {
		t.Error("there is an engine")
	}
}

// TestClosedClient checks that every call fails with the reason, and leaves nothing in the store,
// after the caller has closed the client.
func TestClosedClient(t *testing.T) {
	server := testsvc.Redis(t)
	client := plain(t, server)
	e := engineOn(t, client, nil)
	client.Close()
	for what, call := range drivertest.Calls(t.Context(), e, "t") {
		err := call()
		if what == "list" { // there are no nodes to read
			continue
		}
		if err == nil || driver.Definite(err) {
			t.Errorf("%s: %v, want an error after which the outcome is unknown", what, err)
		}
		wantText(t, err, "client is closing")
	}
	_ = e.Close()
	if n := number(t, plain(t, server), "DBSIZE"); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
