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

// newWay returns the connection of h to a member whose clock is off by off.
func newWay(h *host, number int, m driver.Member, off time.Duration) driver.Member {
	return Skew(&way{Member: m, host: h, number: number}, h.ahead-off)
}

// over sends a request.
func over[Req, Reply any](ctx context.Context, w *way, o op, req Req, send func(context.Context, Req) (Reply, error)) (none Reply, err error) {
	f, there, back, after := w.host.fate(w.number, o)
	lasting := context.WithoutCancel(ctx) // a request under way arrives
	again := func() {
		time.Sleep(there + after)
		_, _ = send(lasting, req)
	}
	switch f {
	case reset:
		return none, errReset
	case refused:
		return none, errRefused
	case late:
		go again()
		return none, errReset
	case twice:
		go again()
	}
	var reply Reply
	var failed error
	answered := make(chan struct{})
	go func() {
		time.Sleep(there)
		if reply, failed = send(lasting, req); f == muted {
			reply, failed = *new(Reply), errReset
		}
		time.Sleep(back)
		close(answered)
	}()
	select {
	case <-answered:
		return reply, failed
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (w *way) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	return over(ctx, w, proposeOp, req, w.Member.Propose)
}

func (w *way) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	return over(ctx, w, withdrawOp, req, w.Member.Withdraw)
}

func (w *way) Renew(ctx context.Context, reqs []driver.RenewRequest) []driver.RenewReply {
	replies, err := over(ctx, w, renewOp, reqs, func(ctx context.Context, reqs []driver.RenewRequest) ([]driver.RenewReply, error) {
		return w.Member.Renew(ctx, reqs), nil
	})
	if err != nil {
		replies = make([]driver.RenewReply, len(reqs))
		for i := range replies {
			replies[i].Err = err
		}
	}
	return replies
}
