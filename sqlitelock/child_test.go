package sqlitelock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// childArg is the first argument of the test binary when it runs as a child.
const childArg = "child"

// childMain runs the test binary as a child. Its arguments are a role, the path of the database,
// and the arguments of the role.
func childMain(args []string) error {
	switch args[0] {
	case "rival":
		return rival()
	case "make":
		return makeAndDie(args[1], args[2], args[3])
	}
	e, err := Open(context.Background(), args[1], nil)
	if err != nil {
		return err
	}
	defer e.Close()
	switch role := args[0]; role {
	case "count":
		return increase(e, args[2], args[3])
	case "cycle":
		return cycleForever(e)
	case "hold":
		return hold(e, args[2])
	case "pairs":
		return pairs(e, args[2])
	case "queue":
		return queueUp(e, args[2], args[3])
	case "wait":
		return waitOnCommand(e)
	default:
		return errors.New("no such role: " + role)
	}
}

// increase adds 1 to the number in dir/count, times times, under a lock. It fails if another
// process does so at the same time, or if a token is not above the previous one.
func increase(e *Engine, dir, times string) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	client, err := holdfast.New(e, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	for range n {
		err := client.Do(context.Background(), "counter", nil, func(_ context.Context, l *holdfast.Lease) error {
			return increment(dir, l.Token())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func increment(dir string, token uint64) error {
	mark := filepath.Join(dir, "mark")
	f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("another process is in the critical section: %w", err)
	}
	_ = f.Close()
	var n, last uint64
	content, err := os.ReadFile(filepath.Join(dir, "count"))
	if err == nil {
		_, err = fmt.Sscan(string(content), &n, &last)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if token <= last {
		return fmt.Errorf("token %d after %d", token, last)
	}
	if err := os.WriteFile(filepath.Join(dir, "count"), fmt.Append(nil, n+1, " ", token), 0o600); err != nil {
		return err
	}
	return os.Remove(mark)
}

// cycleForever acquires and releases several names concurrently until it is killed.
func cycleForever(e *Engine) error {
	fmt.Println("cycling")
	failed := make(chan error)
	for _, name := range []string{"cycled", "a", "b", "c"} {
		go func() { failed <- cycleName(e, name) }()
	}
	return <-failed
}

func cycleName(e *Engine, name string) error {
	for {
		req := drivertest.Request(name, 300*time.Millisecond)
		reply, err := e.Acquire(context.Background(), req)
		if err != nil {
			return err
		}
		if reply.Outcome == driver.Granted {
			err := e.Release(context.Background(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID})
			if err != nil && !errors.Is(err, driver.ErrLost) {
				return err
			}
		}
	}
}

// hold acquires the lock for a TTL, prints two instants of the boot-time clock, before and after
// the request, and waits to be killed.
func hold(e *Engine, ttl string) error {
	d, err := time.ParseDuration(ttl)
	if err != nil {
		return err
	}
	before, err := e.clock.boot()
	if err != nil {
		return err
	}
	reply, err := e.Acquire(context.Background(), drivertest.Request("held", d))
	if err != nil || reply.Outcome != driver.Granted {
		return fmt.Errorf("acquire: %+v, %w", reply, err)
	}
	after, err := e.clock.boot()
	if err != nil {
		return err
	}
	fmt.Println(before.Nanoseconds(), after.Nanoseconds())
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

// waitOnCommand reads commands. "acquire NAME" acquires and releases a lock: it prints "held PLACE"
// for each refused request, and "granted INSTANT TOKEN" once it has the lock. "cost" prints the CPU
// time of the process and the number of its acquire and refresh requests so far.
func waitOnCommand(e *Engine) error {
	waiting := &talkative{Engine: e}
	client, err := holdfast.New(waiting, nil)
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch command, name, _ := strings.Cut(in.Text(), " "); command {
		case "cost":
			used, err := processorTime()
			if err != nil {
				return err
			}
			fmt.Println("cost", used.Nanoseconds(), waiting.requests.Load())
		case "acquire":
			go func() {
				lease, err := client.Acquire(context.Background(), name, nil)
				at, _ := e.clock.boot()
				if err != nil {
					fmt.Println("failed", err)
					return
				}
				fmt.Println("granted", at.Nanoseconds(), lease.Token())
				_ = lease.Release(context.Background())
			}()
		}
	}
	return client.Close()
}

// talkative prints a line for each refused acquire, and counts the acquire and refresh requests.
type talkative struct {
	*Engine
	requests atomic.Int64
}

func (e *talkative) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	e.requests.Add(1)
	reply, err := e.Engine.Acquire(ctx, req)
	if err == nil && reply.Outcome == driver.Held {
		fmt.Println("held", reply.Place)
	}
	return reply, err
}

func (e *talkative) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	e.requests.Add(1)
	return e.Engine.Refresh(ctx, reqs)
}

// queueUp gets a place for a time, prints its number, and waits to be killed.
func queueUp(e *Engine, name, waiterTTL string) error {
	d, err := time.ParseDuration(waiterTTL)
	if err != nil {
		return err
	}
	req := drivertest.Request(name, time.Minute)
	req.Queue, req.WaiterTTL = true, d
	reply, err := e.Acquire(context.Background(), req)
	if err != nil || reply.Outcome != driver.Held {
		return fmt.Errorf("acquire: %+v, %w", reply, err)
	}
	fmt.Println("place", reply.Place)
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}
