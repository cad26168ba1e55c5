package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// callers are the numbers of goroutines on a Redis Cluster.
var callers = []int{1, 16, 64}

// cluster measures goroutines, each with its own name, on one server and on the masters of a
// Redis Cluster. The names are spread over the slots.
func cluster(goroutines int) workload {
	w := throughput(goroutines)
	w.name = fmt.Sprintf("cluster-%d", goroutines)
	w.title = fmt.Sprintf("Goroutines on a Redis Cluster: %d", goroutines)
	w.note = "Server CPU is the sum of the masters, which have no replicas."
	w.base, w.needs = own, peer.Spreads
	w.metrics = []report.Metric{
		perClient, perServer, perScript, perCall, perAllocs, perBytes,
		{Name: "rate", Title: "pairs a second", Better: report.More},
	}
	return w
}

// A clusterStore has the masters of a Redis Cluster, without persistence and without replicas.
type clusterStore []*redisStore

func startCluster(l *life) (all clusterStore) {
	c := testsvc.RedisMasters(l)
	c.Patient()
	for _, m := range c.Masters {
		all = append(all, &redisStore{m})
	}
	return all
}

func (c clusterStore) addr() string {
	var all []string
	for _, m := range c {
		all = append(all, m.addr())
	}
	return strings.Join(all, ",")
}

// pid returns the process ID of one of the masters.
func (c clusterStore) pid() int { return c[0].pid() }

func (c clusterStore) clear() error {
	var errs []error
	for _, m := range c {
		errs = append(errs, m.clear())
	}
	return errors.Join(errs...)
}

func (c clusterStore) cpu() (all time.Duration, err error) {
	var errs []error
	for _, m := range c {
		one, err := m.cpu()
		all, errs = all+one, append(errs, err)
	}
	return all, errors.Join(errs...)
}

func (c clusterStore) scripts() (all scripts, err error) {
	var errs []error
	for _, m := range c {
		one, err := m.scripts()
		all = scripts{all.calls + one.calls, all.took + one.took, max(all.longest, one.longest)}
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}
