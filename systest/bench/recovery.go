package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// recoveryTTL is how long a dead holder's lock stays closed, at most.
const recoveryTTL = 2 * time.Second

// recoveryPatience is how long a waiter may wait for the lock of a dead holder.
const recoveryPatience = 5 * recoveryTTL

// recovery measures a waiter, and a holder in another process that dies. keys is the number of
// other keys with an expiry on the server.
func recovery(keys int) workload {
	name, title := "recovery", "The holder is killed"
	if keys > 0 {
		name, title = fmt.Sprintf("recovery-%d", keys), fmt.Sprintf("The holder is killed, beside %s keys", report.Figure(float64(keys)))
	}
	return workload{
		name: name, title: title, base: own, needs: peer.Takes | peer.Waits, ttl: recoveryTTL, slow: keys > 0,
		note: "From the expiry of the dead holder's key, and from its death, until the waiter has the lock.",
		metrics: []report.Metric{
			{Name: "past", Title: "past the expiry", Unit: "ms", Better: report.Less},
			{Name: "after", Title: "after the kill", Unit: "ms", Better: report.Less},
		},
		begin: func(ctx context.Context, t *trial) (round, error) {
			if server, ok := t.store.(*redisStore); ok && keys > 0 {
				if err := server.fill(keys); err != nil {
					return nil, err
				}
			}
			client, err := t.open(ctx)
			if err != nil {
				return nil, err
			}
			n := 0
			return func(ctx context.Context) (sample, error) {
				n++
				return takeOver(ctx, t, client, oneOf(t.name, int64(n)))
			}, nil
		},
	}
}

// takeOver kills a holder, and measures how long a waiter waits for its lock.
func takeOver(ctx context.Context, t *trial, client peer.Client, name string) (sample, error) {
	defer t.dismiss()
	holder, _, err := t.crew(ctx, crewJob{Hold: 1, Shift: shift{Name: name}})
	if err != nil {
		return nil, err
	}
	name = oneOf(name, 1)
	ctx, cancel := context.WithTimeout(ctx, recoveryPatience)
	defer cancel()
	granted := make(chan error, 1)
	go func() {
		_, err := client.Wait(ctx, name)
		granted <- err
	}()
	time.Sleep(200*time.Millisecond + rand.N(200*time.Millisecond))
	holder.kill()
	killed := time.Now()
	expiry, known, err := t.expiry(name)
	if err != nil {
		return nil, err
	}
	if err := <-granted; err != nil {
		return nil, fmt.Errorf("the waiter did not have the lock %s after the kill: %w", time.Since(killed).Round(time.Second), err)
	}
	s := sample{"after": time.Since(killed).Seconds() * 1000}
	if known {
		s["past"] = time.Since(expiry).Seconds() * 1000
	}
	return s, nil
}

// expiry returns when the key of a lock expires, if that can be known. It may be too early by the
// time that the request travels, but never too late.
func (t *trial) expiry(name string) (at time.Time, known bool, err error) {
	server, ok := t.store.(*redisStore)
	if !ok || t.peer.Key == nil {
		return at, false, nil
	}
	asked := time.Now()
	text, err := server.server.Do("PTTL", t.peer.Key(name))
	if err != nil {
		return at, false, err
	}
	ms, err := strconv.Atoi(text)
	if err == nil && ms < 0 {
		err = fmt.Errorf("PTTL %s is %d: is that the lock's key?", t.peer.Key(name), ms)
	}
	return asked.Add(time.Duration(ms) * time.Millisecond), true, err
}

// fillText makes keys that expire in an hour.
const fillText = "for i = ARGV[1], ARGV[2] do redis.call('SET', 'other' .. i, 1, 'PX', 3600000) end"

// fillAtOnce is how many keys one script makes, so that it ends in time on a busy machine.
const fillAtOnce = 5_000

func (s *redisStore) fill(keys int) error {
	for i := 0; i < keys; i += fillAtOnce {
		if _, err := s.server.Do("EVAL", fillText, "0", strconv.Itoa(i+1), strconv.Itoa(min(i+fillAtOnce, keys))); err != nil {
			return err
		}
	}
	return nil
}
