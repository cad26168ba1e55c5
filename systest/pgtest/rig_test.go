package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/pglock"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// patience is how long a test waits at most, even on a loaded machine.
const patience = time.Minute

// open opens an engine on the servers, of which one is the primary.
func open(t *testing.T, servers ...*testsvc.Database) *pglock.Engine {
	t.Helper()
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr)
	}
	return drivertest.Open(t, pglock.Open, "postgres://postgres@"+strings.Join(addrs, ",")+"/postgres?sslmode=disable&pool_max_conns=16")
}

func newClient(t *testing.T, engine driver.Engine, ttl time.Duration) *holdfast.Client {
	t.Helper()
	client, err := holdfast.New(engine, &holdfast.Options{TTL: ttl, SharedEngine: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// eventually fails the test if ok does not return true within patience.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

const (
	workers = 64
	names   = 16
)

// A crowd is workers that take turns at some locks, and write to a fenced resource under each.
type crowd struct {
	t      *testing.T
	client *holdfast.Client
	gate   *fence.Gate
	stop   context.CancelFunc
	all    sync.WaitGroup

	acquired, expired atomic.Int64 // leases, and leases that ended at their deadline

	mu      sync.Mutex
	highest map[string]uint64 // the last token of a name
}

func newCrowd(t *testing.T, engine driver.Engine, ttl time.Duration) *crowd {
	c := &crowd{t: t, gate: traffic.NewGate(t), highest: map[string]uint64{}}
	c.client = newClient(t, engine, ttl)
	var ctx context.Context
	ctx, c.stop = context.WithCancel(t.Context())
	for i := range workers {
		c.all.Go(func() {
			for ctx.Err() == nil {
				c.turn(ctx, fmt.Sprintf("crowd/%d", i%names))
			}
		})
	}
	t.Cleanup(c.end)
	return c
}

// end stops the workers and waits for them.
func (c *crowd) end() {
	c.stop()
	c.all.Wait()
}

// turn acquires a lock once, and works under it. A lease may only end early at its deadline, when
// the server was down for long. INVARIANT I1, I2.
func (c *crowd) turn(ctx context.Context, name string) {
	lease, err := c.client.Acquire(ctx, name, nil)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrOutcomeUnknown) {
			c.t.Errorf("acquire: %v", err)
		}
		return
	}
	c.acquired.Add(1)
	err = c.gate.Advance(name, lease)
	if err != nil && lease.Valid() {
		c.t.Errorf("%s: the resource refuses a lease that is valid: %v", name, err)
	}
	c.mu.Lock()
	if err == nil && lease.Token() <= c.highest[name] {
		c.t.Errorf("%s: token %d after %d", name, lease.Token(), c.highest[name])
	}
	c.highest[name] = max(c.highest[name], lease.Token())
	c.mu.Unlock()
	select {
	case <-time.After(5 * time.Millisecond):
	case <-lease.Context().Done():
	}
	err = lease.Release(context.WithoutCancel(ctx))
	if !errors.Is(err, holdfast.ErrLost) {
		return
	}
	if c.expired.Add(1); time.Now().Before(lease.Deadline()) {
		c.t.Errorf("%s: a lease was lost %s before its deadline: %v", name, time.Until(lease.Deadline()), err)
	}
}

// goesOn waits until there were as many more turns as workers.
func (c *crowd) goesOn() {
	c.t.Helper()
	before := c.acquired.Load()
	eventually(c.t, "work goes on", func() bool { return c.acquired.Load() > before+workers })
}

// buildBinary returns the path of the command holdfast.
func buildBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/holdfast-locks/holdfast/cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}
