package demo

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// stuckReport renews its lease, and gets no further. If somebody breaks it, it is
// started again after a while.
func stuckReport(ctx context.Context, p *process) error {
	err := p.Do(ctx, report, &holdfast.AcquireOptions{
		TTL: 30 * time.Second, Reason: "monthly figures", Labels: map[string]string{"step": "3 of 7"},
	}, p.during(240*time.Hour, 240*time.Hour))
	_ = p.pause(ctx, 15*time.Second, 25*time.Second)
	return err
}

const report = "reports/monthly"

// waitForReport waits for somebody who is stuck, gives up, and comes again.
func waitForReport(reason string) func(context.Context, *process) error {
	return func(ctx context.Context, p *process) error {
		return p.Do(ctx, report, &holdfast.AcquireOptions{MaxWait: 3 * time.Minute, Reason: reason}, p.during(5*time.Second, 8*time.Second))
	}
}

// freeze is a person who keeps everybody from deploying, and looks now and then
// whether that is so.
func freeze(ctx context.Context, p *process) error {
	const name = "deploy/payments"
	l, err := p.Acquire(ctx, name, &holdfast.AcquireOptions{
		TTL: 4 * time.Hour, KeepAlive: holdfast.KeepAliveOff, WholeTTL: true, Reason: "freeze until the audit is over",
	})
	if err != nil {
		return err
	}
	if _, err := l.Leave(); err != nil { // a person has no process that releases it
		return err
	}
	for ctx.Err() == nil {
		_ = p.pause(ctx, 20*time.Second, 40*time.Second)
		lock, err := p.Inspect(ctx, name)
		if err != nil || len(lock.Holders) == 0 || !lock.Holders[0].Holder.Person {
			return err
		}
	}
	return ctx.Err()
}

// runOut takes a lease without renewals, and works longer than it lasts.
func runOut(ctx context.Context, p *process) error {
	err := p.Do(ctx, "media/thumbnails", &holdfast.AcquireOptions{
		TTL: 4 * time.Second, KeepAlive: holdfast.KeepAliveOff, WholeTTL: true, Reason: "thumbnails of new uploads",
	}, p.during(2*time.Second, 8*time.Second))
	_ = p.pause(ctx, time.Second, 4*time.Second)
	return err
}

// crash leaves its lease, as a killed process does.
func crash(ctx context.Context, p *process) error {
	l, err := p.Acquire(ctx, transcode, &holdfast.AcquireOptions{TTL: 5 * time.Second, WholeTTL: true, Reason: "film of the new shop window"})
	if err != nil {
		return err
	}
	err = p.pause(ctx, 2*time.Second, 4*time.Second)
	if err == nil {
		_, err = l.Leave()
	}
	_ = p.pause(ctx, 8*time.Second, 14*time.Second) // it is started again
	return errors.Join(err, l.Release(context.WithoutCancel(ctx)))
}

const transcode = "media/transcode"

// transcoder takes over from a crashed process when its lease expires.
func transcoder(ctx context.Context, p *process) error {
	err := p.Do(ctx, transcode, &holdfast.AcquireOptions{Reason: "films of customers"}, p.during(3*time.Second, 6*time.Second))
	_ = p.pause(ctx, 2*time.Second, 4*time.Second)
	return err
}

const hung = "cache/catalog"

// hang holds a lock for longer than others like.
func hang(ctx context.Context, p *process) error {
	err := p.Do(ctx, hung, &holdfast.AcquireOptions{Reason: "warm up the cache"}, p.during(2*time.Minute, 3*time.Minute))
	_ = p.pause(ctx, 4*time.Second, 8*time.Second)
	return err
}

// breakHung is a person who has had enough of that.
func breakHung(ctx context.Context, p *process) error {
	_ = p.pause(ctx, 8*time.Second, 24*time.Second)
	lock, err := p.Inspect(ctx, hung)
	if err != nil || len(lock.Holders) == 0 {
		return err
	}
	_, err = p.Break(ctx, hung, &holdfast.BreakOptions{
		Token: lock.Holders[0].Token, Author: p.user + "@" + p.host,
		Reason: p.one("worker-3 hangs since its last deploy", "the cache must be warm before the sale begins"),
	})
	return err
}

// billing is done soon, and its name stays closed, so that a replica whose clock is behind
// does not run it again.
func billing(ctx context.Context, p *process) error {
	err := p.TryDo(ctx, "billing/run", &holdfast.AcquireOptions{MinHold: 50 * time.Second, Reason: "bill what was sent today"}, p.during(2*time.Second, 3*time.Second))
	if errors.Is(err, holdfast.ErrHeld) {
		err = nil
	}
	_ = p.pause(ctx, 52*time.Second, 60*time.Second)
	return err
}
