//go:build unix

package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
)

// Numbers of the pipes in a keeper.
const (
	ordersFD  = 3
	reportsFD = 4
)

// endTime is how long close may take after the end of the lease.
const endTime = time.Second

// Main runs the keeper, and returns its exit status.
func Main() int {
	forget()
	orders, reports := os.NewFile(ordersFD, "orders"), os.NewFile(reportsFD, "reports")
	lines := bufio.NewReader(orders)
	ended, stop := context.WithCancel(context.Background())
	k := &keeper{ended: ended.Done(), stop: stop}
	err := k.begin(lines)
	a := started{Socket: k.server.Path()}
	if err != nil {
		k.close()
		a = started{Status: exit.StatusOf(err), Error: err.Error()}
	}
	_ = json.NewEncoder(reports).Encode(a) // without a reader there will be no commit
	_ = reports.Close()
	if err == nil {
		go func() { // ends with the starter
			line, _ := lines.ReadString('\n')
			_ = orders.Close()
			if line != commit { // the starter has ended, and has not printed the lease
				k.stop()
			}
		}()
		k.loop()
		k.close()
	}
	return a.Status
}

// forget closes descriptors that this process has inherited from the script by accident, because
// other processes may wait until they are closed. It ignores signals that are meant for the
// script: the keeper outlives them.
func forget() {
	for fd := reportsFD + 1; fd < 1024; fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportsFD)
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGTSTP)
}

// A keeper is the process that keeps a lease.
type keeper struct {
	order  Order
	script *Script
	client *holdfast.Client
	lease  *holdfast.Lease
	run    *holdfast.OnceRun // of do-once work
	server *Server
	pulse  *Pulse

	ended <-chan struct{}    // closed when the lease was ended on request, or the starter is gone
	stop  context.CancelFunc // closes ended
}

// begin reads the order and opens what the keeper needs. It adopts the lease last: if an earlier
// step fails, the starter still has the lease.
func (k *keeper) begin(orders *bufio.Reader) (err error) {
	line, err := orders.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &k.order)
	}
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if k.script, err = Watch(k.order.PID); err != nil {
		return exit.Errorf(exit.Usage, "--pid %w", err)
	}
	if k.server, err = Listen(os.Getenv); err != nil {
		return exit.With(exit.Config, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	engine, err := k.order.Store.Open(ctx) // its URL may name files relative to the script's directory
	if err != nil {
		return err
	}
	_ = os.Chdir("/")                      // the script's file system may be unmounted
	quiet := slog.New(slog.DiscardHandler) // a keeper has no log
	if k.client, err = holdfast.New(engine, &holdfast.Options{Logger: quiet}); err != nil {
		_ = engine.Close()
		return err
	}
	if err := k.adopt(ctx); err != nil {
		return err
	}
	k.pulse = NewPulse(k.order.Adopt.StallAfter)
	k.server.Serve(Desk{
		What: strconv.Quote(k.order.Name), LeaseID: k.lease.ID(), Lease: k.lease, Pulse: k.pulse, End: k.end,
	}.Answer)
	return nil
}

// adopt takes the lease over.
func (k *keeper) adopt(ctx context.Context) (err error) {
	o := &k.order
	if o.Once == nil {
		k.lease, err = k.client.Adopt(ctx, o.Handle, &o.Adopt)
		return err
	}
	once := o.Once.Options(o.Adopt.TTL)
	once.MaxHold, once.StallAfter = o.Adopt.MaxHold, o.Adopt.StallAfter
	if k.run, err = k.client.OnceAdopt(ctx, o.Handle, once); err != nil {
		return err
	}
	if k.run.Replayed() {
		return fmt.Errorf("%w: it is done already", holdfast.ErrLost)
	}
	k.lease = k.run.Lease()
	return nil
}

// lead returns how long before the end of the lease the keeper sends TERM to the script: as early
// as holdfast run sends it to a command.
func (k *keeper) lead() time.Duration { return Grace(k.order.Adopt.TTL) + Margin(k.order.Adopt.TTL) }

// Grace returns how long the work under a lease of this TTL may go on after TERM, unless the user
// has chosen another time.
func Grace(ttl time.Duration) time.Duration { return min(5*time.Second, ttl/4) }

// Margin returns how long before the end of a lease of this TTL its work must be gone.
func Margin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, 20*time.Millisecond), 500*time.Millisecond)
}

// lookEvery is how often the keeper checks the lease: its timer stops while the machine is
// suspended.
const lookEvery = time.Second

// loop returns when the lease is no longer needed. INVARIANT I3, as far as a signal can keep it:
// the keeper sends TERM to the script before another client can get the lock.
func (k *keeper) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for lost := k.lease.Context().Done(); ; {
		select {
		case <-k.script.Gone():
			return
		case <-k.ended:
			return
		case <-lost:
			lost = nil
			k.warn(timer)
		case <-timer.C:
			switch next := k.next(); {
			case next > 0:
				timer.Reset(min(next, lookEvery))
			case k.lease.Remaining() > 0:
				k.warn(timer)
				lost = nil
			default: // lost or being released: the cause of the context says which
			}
		}
	}
}

// next returns how long there is no reason to warn the script.
func (k *keeper) next() time.Duration {
	next := k.lease.Remaining() - k.lead()
	if left, bounded := k.pulse.Left(); bounded {
		next = min(next, left)
	}
	return next
}

// warn sends TERM to the script, once, because its lease has ended or is about to. It does not if
// the script has released the lease.
func (k *keeper) warn(timer *time.Timer) {
	timer.Stop()
	if cause := context.Cause(k.lease.Context()); cause == nil || errors.Is(cause, holdfast.ErrLost) {
		k.script.Signal(syscall.SIGTERM)
	}
}

// end handles requests that end the lease.
func (k *keeper) end(ctx context.Context, r Request) Answer {
	var err error
	switch {
	case r.Do == Release && k.run == nil:
		k.stop()
		err = k.lease.Release(ctx)
	case r.Do == Complete && k.run != nil:
		err = k.run.Complete(ctx, r.Value)
		if errors.Is(err, holdfast.ErrInvalid) { // the run goes on
			return Answer{Status: exit.TooLong, Error: err.Error()}
		}
		k.stop()
	case r.Do == Fail && k.run != nil:
		k.stop()
		err = k.run.Fail(ctx)
	default:
		return Answer{Status: exit.Config, Error: fmt.Sprintf("%s %q: the lease is not of that kind", r.Do, k.order.Name)}
	}
	switch {
	case errors.Is(err, holdfast.ErrLost):
		return Answer{Status: exit.Lost, Error: err.Error()}
	case err != nil:
		return Answer{Status: exit.StatusOf(err), Error: err.Error()}
	}
	return Answer{}
}

// close releases the lease, and waits for the replies in progress.
func (k *keeper) close() {
	limit := endTime
	if k.lease != nil {
		limit += k.lease.Remaining()
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if k.lease != nil {
		_ = k.lease.Release(ctx) // the client keeps trying
	}
	k.server.Drain()
	if k.client != nil {
		_ = k.client.Shutdown(ctx) // the lease is released or lost; this waits for clean-up
		_ = k.client.Close()
	}
}
