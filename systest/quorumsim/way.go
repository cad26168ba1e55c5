package quorumsim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A host runs one client, with a clock and a network of its own.
type host struct {
	ahead time.Duration // of its clock; constant

	mu   sync.Mutex // guards the rest
	r    *rand.Rand
	blip blip
	calm bool // faults have ended
	hits map[fate]int
}

// A blip is a time in which requests fail.
type blip struct {
	from, until time.Time
	fate        fate
	members     uint // as bits
	op          op   // which requests; anyOp for all
}

type op int

const (
	anyOp op = iota
	proposeOp
	withdrawOp
	renewOp
)

// A fate is what the network does to a request.
type fate int

const (
	arrives fate = iota
	reset        // the request does not arrive, and its sender cannot know
	refused      // the request does not arrive, and its sender knows
	muted        // the request arrives, and its reply is lost
	late         // the sender sees a reset connection, and the request arrives later
	twice        // the request arrives, and once more later
	fates
)

var (
	errReset   = errors.New("connection reset by peer")
	errRefused = fmt.Errorf("%w: connection refused", driver.ErrUnavailable)
)

// fate returns the fate of a request that is sent to a member now, how long it takes each
// way, and how much later a late copy arrives.
func (h *host) fate(member int, o op) (f fate, there, back, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	there, back, after = h.between(50, 3000), h.between(50, 3000), h.between(1_000, 60_000)
	if h.calm {
		return arrives, there, back, after
	}
	now := time.Now()
	for !now.Before(h.blip.until) {
		from := h.blip.until.Add(h.between(1_000, 150_000))
		if h.blip.until.IsZero() {
			from = now
		}
		h.blip = blip{
			from: from, until: from.Add(h.between(1_000, 50_000)), fate: fate(h.r.IntN(int(fates))),
			members: 1<<8 - 1, op: op(max(0, h.r.IntN(6)-2)),
		}
		if h.r.IntN(2) == 0 {
			h.blip.members = uint(1 + h.r.IntN(31))
		}
	}
	hit := !now.Before(h.blip.from) && h.blip.members>>member&1 == 1 && (h.blip.op == anyOp || h.blip.op == o)
	if hit {
		f = h.blip.fate
	}
	h.hits[f]++
	return f, there, back, after
}

// between returns a random time in microseconds between least and most.
func (h *host) between(least, most int) time.Duration {
	return time.Duration(least+h.r.IntN(most-least)) * time.Microsecond
}

// A way is the connection of one host to one member.
type way struct {
	driver.Member
	host   *host
	number int
}

// newWay returns the connection of h to a member whose clock is wrong by off.
func newWay(h *host, number int, m driver.Member, off time.Duration) driver.Member {
	return Skew(&way{Member: m, host: h, number: number}, h.ahead-off)
}

// over sends a request.
func over[T any](ctx context.Context, w *way, o op, request func(context.Context) T, failed func(error) T) T {
	f, there, back, after := w.host.fate(w.number, o)
	lasting := context.WithoutCancel(ctx) // a request under way arrives
	again := func() {
		time.Sleep(there + after)
		request(lasting)
	}
	switch f {
	case reset:
		return failed(errReset)
	case refused:
		return failed(errRefused)
	case late:
		go again()
		return failed(errReset)
	case twice:
		go again()
	}
	answer := make(chan T, 1)
	go func() {
		time.Sleep(there)
		reply := request(lasting)
		time.Sleep(back)
		if f == muted {
			reply = failed(errReset)
		}
		answer <- reply
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

func (w *way) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	r := over(ctx, w, proposeOp, func(ctx context.Context) (r reply[driver.ProposeReply]) {
		r.value, r.err = w.Member.Propose(ctx, req)
		return r
	}, fails)
	return r.value, r.err
}

func (w *way) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	r := over(ctx, w, withdrawOp, func(ctx context.Context) (r reply[uint64]) {
		r.value, r.err = w.Member.Withdraw(ctx, req)
		return r
	}, fails)
	return r.value, r.err
}

func (w *way) Renew(ctx context.Context, reqs []driver.RenewRequest) []driver.RenewReply {
	return over(ctx, w, renewOp, func(ctx context.Context) []driver.RenewReply {
		return w.Member.Renew(ctx, reqs)
	}, func(err error) []driver.RenewReply {
		failed := make([]driver.RenewReply, len(reqs))
		for i := range failed {
			failed[i].Err = err
		}
		return failed
	})
}
