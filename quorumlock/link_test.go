package quorumlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A link connects one client to a member. A request that was sent arrives even if its sender has
// given up, as on a network.
type link struct {
	driver.Member

	mu     sync.Mutex // guards the rest
	state  linkState
	rtt    func() time.Duration // nil: none
	back   time.Duration        // how much longer the reply takes
	counts map[string]int       // requests, by method
	broken map[string][]error   // by method: the errors of the next requests; nil lets one pass
	held   []chan struct{}      // requests that wait for deliver
}

// Capabilities omits List, which a link does not support.
func (l *link) Capabilities() driver.Capabilities {
	c := l.Member.Capabilities()
	c.List = false
	return c
}

// A plain is a member without optional methods.
type plain struct{ driver.Member }

func (plain) Capabilities() driver.Capabilities { return driver.Capabilities{} }

type linkState int

const (
	up      linkState = iota
	down              // requests are refused at once
	silent            // requests are never delivered
	reset             // requests are not delivered, and their senders cannot notice
	deaf              // requests are delivered, replies are not
	holding           // requests are delivered when the test calls deliver; senders do not wait
)

var (
	errRefused = fmt.Errorf("%w: connection refused", driver.ErrUnavailable)
	errReset   = errors.New("connection reset by peer") // the outcome is unknown
)

func (l *link) set(s linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
}

// slow makes each round trip take d.
func (l *link) slow(d time.Duration) { l.vary(func() time.Duration { return d }) }

func (l *link) vary(rtt func() time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rtt = rtt
}

// count returns the number of requests of a method since the last count.
func (l *link) count(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.counts[method]
	l.counts[method] = 0
	return n
}

// breaks makes the next requests of a method fail with these errors, in order and undelivered; nil
// lets one pass.
func (l *link) breaks(method string, errs ...error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = map[string][]error{}
	}
	l.broken[method] = errs
}

// nextBroken returns the error of a request, or nil.
func (l *link) nextBroken(method string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := l.broken[method]
	if len(errs) == 0 {
		return nil
	}
	l.broken[method] = errs[1:]
	return errs[0]
}

// deliver delivers the delayed requests, and sets the link up.
func (l *link) deliver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = up
	for _, gate := range l.held {
		close(gate)
	}
	l.held = nil
}

// enter counts a request and returns the state of the link.
func (l *link) enter(method string) (s linkState, there, back time.Duration, gate chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[method]++
	if l.rtt != nil {
		rtt := l.rtt()
		there, back = rtt/2, rtt-rtt/2
	}
	if l.state == holding {
		gate = make(chan struct{})
		l.held = append(l.held, gate)
	}
	return l.state, there, back + l.back, gate
}

// over sends a request over l.
func over[T any](ctx context.Context, l *link, method string, request func(context.Context) T, failed func(error) T) T {
	state, there, back, gate := l.enter(method)
	if err := l.nextBroken(method); err != nil {
		return failed(err)
	}
	switch state {
	case down:
		return failed(errRefused)
	case reset:
		return failed(errReset)
	case silent:
		<-ctx.Done()
		return failed(ctx.Err())
	}
	answer := make(chan T, 1)
	go func() {
		if gate != nil {
			<-gate
		}
		time.Sleep(there)
		reply := request(context.WithoutCancel(ctx))
		time.Sleep(back)
		if state != deaf {
			answer <- reply
		}
	}()
	select {
	case reply := <-answer:
		return reply
	case <-ctx.Done():
		return failed(ctx.Err())
	}
}

type reply[T any] struct {
	value T
	err   error
}

func fails[T any](err error) reply[T] { return reply[T]{err: err} }

func (l *link) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	r := over(ctx, l, "Propose", func(ctx context.Context) (r reply[driver.ProposeReply]) {
		r.value, r.err = l.Member.Propose(ctx, req)
		return r
	}, fails)
	return r.value, r.err
}

func (l *link) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	r := over(ctx, l, "Withdraw", func(ctx context.Context) (r reply[uint64]) {
		r.value, r.err = l.Member.Withdraw(ctx, req)
		return r
	}, fails)
	return r.value, r.err
}

func (l *link) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	r := over(ctx, l, "Inspect", func(ctx context.Context) (r reply[lockinfo.LockState]) {
		r.value, r.err = l.Member.Inspect(ctx, name)
		return r
	}, fails)
	return r.value, r.err
}

func (l *link) Renew(ctx context.Context, reqs []driver.RenewRequest) []driver.RenewReply {
	return over(ctx, l, "Renew", func(ctx context.Context) []driver.RenewReply {
		return l.Member.Renew(ctx, reqs)
	}, func(err error) []driver.RenewReply {
		replies := make([]driver.RenewReply, len(reqs))
		for i := range replies {
			replies[i].Err = err
		}
		return replies
	})
}

// linked returns a link to each member.
func linked[M driver.Member](stores []M) []*link {
	var links []*link
	for _, s := range stores {
		links = append(links, &link{Member: s})
	}
	return links
}

// Close does nothing: the test closes the members.
func (l *link) Close() error { return errors.New("a link was closed") }
