package systest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// How many readers of events there are, and by what factor they may increase the processor time of
// a pair in the process that makes the pairs and serves the readers.
const (
	eventReaders     = 200
	eventReadersMost = 1.5
)

// TestEventReadersCost measures what readers of all events add to the cost of a pair, in
// alternating rounds without and with them. The readers have a process of their own. Only a soak
// judges the ratio, because other work disturbs it.
func TestEventReadersCost(t *testing.T) {
	s := newStore(t)
	start := func(prefix string) (url string) {
		c := traffic.Start(t, traffic.Job{Job: "pairs and events", Store: s.server.URL + "?history=1&prefix=" + prefix, Workers: 4})
		c.Begin()
		c.Next(&url)
		return url
	}
	alone, watched := start("alone:"), start("watched:")
	readers := traffic.Start(t, traffic.Job{Job: "read events", Store: watched, Name: "gzip", Workers: eventReaders})
	readers.Begin()
	var reading string
	readers.Next(&reading)

	for what, rest := range map[string]time.Duration{"as fast as can be": 0, "100 a second": 40 * time.Millisecond} {
		var without, with, rates []float64
		for range soak.Count(2, 30) {
			a, b := roundOfPairs(t, alone, rest), roundOfPairs(t, watched, rest)
			without, with, rates = append(without, a.CPU), append(with, b.CPU), append(rates, b.Rate)
		}
		ratio := median(with) / median(without)
		report.Row(t, "200 readers of events, pairs "+what, "goal: 1.5 times the processor time at most",
			"%.0f µs for a pair without and %.0f with them: %.2f ×, %.0f pairs a second", median(without), median(with), ratio, median(rates))
		if soak.Long() && !underRace && ratio > eventReadersMost {
			t.Errorf("pairs %s: %d readers of events make one %.2f times as expensive, want %.1f at most", what, eventReaders, ratio, eventReadersMost)
		}
	}
}

// A pairCost is what a server's process used for pairs that it made itself.
type pairCost struct {
	CPU  float64 // µs per pair
	Rate float64 // pairs a second
}

// roundOfPairs makes the process of a server run a round of pairs.
func roundOfPairs(t *testing.T, url string, rest time.Duration) (cost pairCost) {
	t.Helper()
	r, err := http.Get(url + "/round?rest=" + rest.String())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&cost); err != nil {
		t.Fatal(err)
	}
	return cost
}

// serveAndPair is a job: a server that also makes pairs, on a request for /round.
func serveAndPair(ctx context.Context, j traffic.Job) (any, error) {
	client, engine, err := j.Client(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	s, err := server.New(engine, nil)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) {
		rest, err := time.ParseDuration(r.FormValue("rest"))
		cost, failed := costOfPairs(ctx, client, j.Workers, rest)
		if err := errors.Join(err, failed); err != nil {
			http.Error(w, strconv.Quote(err.Error()), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(cost)
	})
	h := &http.Server{Handler: mux, ConnContext: server.ConnContext}
	go func() { _ = h.Serve(l) }()
	j.Out("http://" + l.Addr().String())
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Drain()
	return nil, errors.Join(client.Close(), h.Close(), s.Close(ctx))
}

// costOfPairs lets workers acquire and release locks, each its own, for a while.
func costOfPairs(ctx context.Context, client *holdfast.Client, workers int, rest time.Duration) (pairCost, error) {
	length := max(500*time.Millisecond, 50*rest) // much longer than the time between two writes to a reader
	pairs, errs := make([]int, workers), make([]error, workers)
	before, began := usedTime(), time.Now()
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for name := "pairs/" + strconv.Itoa(i); time.Since(began) < length && errs[i] == nil; pairs[i]++ {
				errs[i] = client.TryDo(ctx, name, nil, func(context.Context, *holdfast.Lease) error { return nil })
				time.Sleep(rest)
			}
		})
	}
	wg.Wait()
	n, took := 0, time.Since(began)
	for _, p := range pairs {
		n += p
	}
	time.Sleep(300 * time.Millisecond) // until the events are written
	return pairCost{CPU: (usedTime() - before).Seconds() * 1e6 / float64(n), Rate: float64(n) / took.Seconds()}, errors.Join(errs...)
}

// usedTime returns the processor time of this process.
func usedTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readEvents is a job: workers that read all events of a server and discard them.
func readEvents(ctx context.Context, j traffic.Job) (any, error) {
	transport := &http.Transport{DisableCompression: true} // keeps compressed events compressed
	defer transport.CloseIdleConnections()
	var wg sync.WaitGroup
	for range j.Workers {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, j.Store+"/v1/events", nil)
		if err != nil {
			return nil, err
		}
		if j.Name != "" {
			r.Header.Set("Accept-Encoding", j.Name)
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		wg.Go(func() {
			_, _ = io.Copy(io.Discard, answer.Body) // ends with the job
			_ = answer.Body.Close()
		})
	}
	j.Out("reading")
	wg.Wait()
	return nil, nil
}
