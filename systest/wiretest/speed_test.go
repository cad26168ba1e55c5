package wiretest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// These are limits for what a server between client and Redis adds to direct requests. The report
// compares pairs and crowds with goals, which are missed if both processors go idle during a
// request to Redis. The test fails only beyond the weaker bounds.
const (
	handOverAdds          = 500 * time.Microsecond
	pairGoal, pairAdds    = 1.5, 3.0 // times the time of two net/http requests with bodies of this size
	crowdGoal, crowdKeeps = 0.6, 0.5 // times half of the net/http requests per second
	callers               = 64
)

// client returns a client for an engine.
func client(tb testing.TB, engine driver.Engine) *holdfast.Client {
	tb.Helper()
	c, err := holdfast.New(engine, &holdfast.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// pairs returns how long a pair of acquire and release takes one caller, in the mean of n pairs.
func pairs(tb testing.TB, c *holdfast.Client, name string, n int) time.Duration {
	tb.Helper()
	began := time.Now()
	for range n {
		lease, err := c.TryAcquire(tb.Context(), name, nil)
		if err != nil {
			tb.Error(err)
			return 0
		}
		if err := lease.Release(tb.Context()); err != nil {
			tb.Error(err)
		}
	}
	return time.Since(began) / time.Duration(n)
}

// A bare server reads a body and sends one, of the mean sizes of acquires and releases.
type bare struct {
	*httptest.Server
	client *http.Client
}

const asks, says = 170, 60 // mean bytes of the requests and replies of acquire and release

// newBare returns a server that calls first before it replies.
func newBare(tb testing.TB, first func(context.Context)) *bare {
	answer := bytes.Repeat([]byte("x"), says)
	b := &bare{
		Server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			first(r.Context())
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer)
		})),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * callers}},
	}
	server.Configure(b.Config)
	b.Start()
	tb.Cleanup(func() {
		b.client.CloseIdleConnections()
		b.Close()
	})
	return b
}

// requests returns how long a request takes, in the mean of n requests.
func (b *bare) requests(tb testing.TB, n int) time.Duration {
	tb.Helper()
	body := bytes.Repeat([]byte("x"), asks)
	began := time.Now()
	for range n {
		answer, err := b.client.Post(b.URL, "application/json", bytes.NewReader(body))
		if err != nil {
			tb.Error(err)
			return 0
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	return time.Since(began) / time.Duration(n)
}

// look returns a function that sends a request to a store and waits for the reply.
func look(tb testing.TB, engine driver.Engine) func(context.Context) {
	return func(ctx context.Context) {
		if _, err := engine.Inspect(ctx, "one"); err != nil {
			tb.Error(err)
		}
	}
}

// mean returns how long do takes, in the mean of n calls.
func mean(n int, do func()) time.Duration {
	began := time.Now()
	for range n {
		do()
	}
	return time.Since(began) / time.Duration(n)
}

// crowd makes all callers at once do something n times, and returns how often a second they did it.
func crowd(n int, do func(caller, n int)) float64 {
	began := time.Now()
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() { do(c, n) })
	}
	all.Wait()
	return float64(n*callers) / time.Since(began).Seconds()
}

// handOver returns the time from a release to the lease of the next waiter.
func handOver(tb testing.TB, c *holdfast.Client, engine driver.Engine, name string) time.Duration {
	tb.Helper()
	held, err := c.Acquire(tb.Context(), name, nil)
	if err != nil {
		tb.Fatal(err)
	}
	next := make(chan *holdfast.Lease, 1)
	go func() { // ends when it has the lease
		lease, err := c.Acquire(tb.Context(), name, nil)
		if err != nil {
			tb.Error(err)
		}
		next <- lease
	}()
	for waits := false; !waits; time.Sleep(100 * time.Microsecond) {
		lock, err := engine.Inspect(tb.Context(), name)
		if err != nil {
			tb.Fatal(err)
		}
		waits = lock.QueueLength == 1
	}
	time.Sleep(time.Millisecond) // until the waiter has the reply that it is queued
	began := time.Now()
	released := make(chan error, 1)
	go func() { released <- held.Release(tb.Context()) }() // do not wait for the reply
	lease := <-next
	took := time.Since(began)
	if err := <-released; err != nil {
		tb.Error(err)
	}
	if lease != nil {
		if err := lease.Release(tb.Context()); err != nil {
			tb.Error(err)
		}
	}
	return took
}

// TestSpeed checks how much time a server between client and Redis adds, in rounds that alternate
// with direct requests. Only a soak run can fail, because only then nothing else runs.
func TestSpeed(t *testing.T) {
	redis := testsvc.Redis(t)
	near := direct(t, redis)
	far := over(t, serve(t, direct(t, redis)).URL)
	directly, through, plain := client(t, near), client(t, far), newBare(t, func(context.Context) {})
	looks := newBare(t, look(t, direct(t, redis))) // waits for Redis, as a holdfast server does
	pairs(t, directly, "warm", 100)
	pairs(t, through, "warm", 100)
	plain.requests(t, 100)
	looks.requests(t, 100)
	handOver(t, directly, near, "warm")
	handOver(t, through, near, "warm")

	var near1, far1, bare2, looks2, look2, nearHand, farHand []time.Duration
	var nearN, farN, bareN []float64
	for i := range soak.Count(5, 60) {
		near1 = append(near1, pairs(t, directly, "one", 50))
		far1 = append(far1, pairs(t, through, "one", 50))
		bare2 = append(bare2, 2*plain.requests(t, 100))
		looks2 = append(looks2, 2*looks.requests(t, 100))
		look2 = append(look2, 2*mean(100, func() { look(t, near)(t.Context()) }))
		name := fmt.Sprint("hand over ", i)
		nearHand = append(nearHand, handOver(t, directly, near, name))
		farHand = append(farHand, handOver(t, through, near, name))
		nearN = append(nearN, crowd(20, func(c, n int) { pairs(t, directly, fmt.Sprint("crowd ", c), n) }))
		farN = append(farN, crowd(20, func(c, n int) { pairs(t, through, fmt.Sprint("crowd ", c), n) }))
		bareN = append(bareN, crowd(40, func(_, n int) { plain.requests(t, n) }))
	}
	added := float64(median(far1)-median(near1)) / float64(median(bare2))
	waits := float64(median(looks2)-median(look2)) / float64(median(bare2))
	kept := median(farN) / (median(bareN) / 2)
	hand := median(farHand) - median(nearHand)
	report.Row(t, "a server between the client and Redis", fmt.Sprintf("a hand-over takes %s more at most; a pair of one caller %.1f × two bare requests more; %d callers make %.1f × half the bare requests a second (goals)", handOverAdds, pairGoal, callers, crowdGoal),
		"hand-over %s and %s directly; pair %s and %s directly, two bare requests %s: %.2f × (%.2f × if the handler of the bare ones asks Redis something); %d callers: %.0f pairs/s, %.0f directly, %.0f bare requests/s: %.2f ×",
		median(farHand), median(nearHand), median(far1), median(near1), median(bare2), added, waits, callers, median(farN), median(nearN), median(bareN), kept)
	if !soak.Long() {
		return
	}
	if hand > handOverAdds {
		t.Errorf("a hand-over takes %s more, want %s at most", hand, handOverAdds)
	}
	if added > pairAdds {
		t.Errorf("a pair takes %.2f × two bare requests more, want %.1f at most", added, pairAdds)
	}
	if kept < crowdKeeps {
		t.Errorf("%d callers make %.2f × half the bare requests a second, want %.1f", callers, kept, crowdKeeps)
	}
}

func median[T time.Duration | float64](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}
