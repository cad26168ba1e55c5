package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// lossTTL is the TTL of a lease that is lost.
const lossTTL = 5 * time.Second

var errUntold = errors.New("the holder did not learn that its lock was deleted")

// loss measures a holder whose lock is deleted.
func loss() workload {
	return workload{
		name: "loss", title: "The lock is deleted with DEL, TTL 5s", base: own, needs: peer.Takes | peer.Tells, ttl: lossTTL,
		note:    "Until the holder knows. The lock was renewed once before.",
		metrics: []report.Metric{{Name: "known", Title: "known after", Unit: "ms", Better: report.Less}},
		begin: func(ctx context.Context, t *trial) (round, error) {
			server, ok := t.store.(*redisStore)
			if !ok || t.peer.Key == nil {
				return nil, errors.New("its lock is not one key")
			}
			client, err := t.open(ctx)
			n := 0
			return func(ctx context.Context) (sample, error) {
				n++
				return lose(ctx, client, server, oneOf(t.name, int64(n)), t.peer.Key)
			}, err
		},
	}
}

// lose deletes a lock, and measures how long its holder takes to notice.
func lose(ctx context.Context, client peer.Client, server *redisStore, name string, key func(name string) string) (sample, error) {
	held, err := client.Try(ctx, name)
	if err != nil {
		return nil, err
	}
	sleep(ctx, lossTTL/2+100*time.Millisecond+rand.N(time.Second))
	if _, err := server.server.Do("DEL", key(name)); err != nil {
		return nil, err
	}
	deleted := time.Now()
	select {
	case <-held.(peer.Told).Lost():
		return sample{"known": time.Since(deleted).Seconds() * 1000}, nil
	case <-time.After(2 * lossTTL):
		return nil, errUntold
	}
}
