package systest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// TestDeletionIsTold checks that a holder learns of a deletion at once, where the server can report
// it. INVARIANT I3 does not depend on that.
func TestDeletionIsTold(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	s := newStore(t)
	client := newClient(t, openEngine(t, s.server.URL+"?tell_deletions=1"), &holdfast.Options{TTL: ttl})
	n := soak.Count(20, 200)
	var leases []*holdfast.Lease
	for i := range n {
		lease, err := client.TryAcquire(t.Context(), fmt.Sprintf("told/%d", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	tracked := fmt.Sprintf("tracking_total_keys:%d\r\n", n)
	eventually(t, "the first renewal has made the server tell of all", func() bool {
		info, err := s.do(t, "INFO", "stats").ToString()
		return err == nil && strings.Contains(info, tracked)
	})
	var took []time.Duration
	await := func(lease *holdfast.Lease, began time.Time) {
		deadline := lease.Deadline()
		select {
		case <-lease.Context().Done():
		case <-time.After(patience):
			t.Fatalf("%s: no holder was notified", lease.Name())
		}
		took = append(took, time.Since(began))
		if left := time.Until(deadline); left < ttl/3+ttl/6 {
			t.Errorf("%s was told with %s left: its next renewal would have said so", lease.Name(), left)
		}
		_ = lease.Release(t.Context())
	}
	for i, lease := range leases[:n/2] {
		began := time.Now()
		switch i % 2 {
		case 0:
			s.do(t, "DEL", lease.Name())
		default:
			s.do(t, "SET", lease.Name(), "somebody else's")
		}
		await(lease, began)
	}
	began := time.Now()
	s.do(t, "FLUSHALL")
	for _, lease := range leases[n/2:] {
		await(lease, began)
	}
	slices.Sort(took)
	if median := took[n/2]; median > ttl/12 {
		t.Errorf("the median lease was notified after %s: renewals would have said so", median)
	}
	report.Row(t, "DEL, SET and FLUSHALL under a holder, with tell_deletions", "the holder knows before its next renewal",
		"%d leases: notified after %s (median), %s at most", n, took[n/2].Round(10*time.Microsecond), took[n-1].Round(10*time.Microsecond))
}

// BenchmarkRenewalThatTells measures the server's time per lease for renewals of 100 leases,
// alternately without and with tell_deletions.
func BenchmarkRenewalThatTells(b *testing.B) {
	const leases = 100
	var servers []*testsvc.Server
	var engines []*redislock.Engine
	var batches [][]driver.ExtendRequest
	for _, options := range []string{"", "?tell_deletions=1"} {
		server := testsvc.Redis(b)
		engine, err := redislock.Open(b.Context(), server.URL+options)
		if err != nil {
			b.Fatal(err)
		}
		defer engine.Close()
		defer engine.OnLoss(func(driver.Loss) {})()
		var batch []driver.ExtendRequest
		for i := range leases {
			req := request(fmt.Sprintf("renewed/%d", i))
			if _, err := engine.Acquire(b.Context(), req); err != nil {
				b.Fatal(err)
			}
			batch = append(batch, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL})
		}
		servers, engines, batches = append(servers, server), append(engines, engine), append(batches, batch)
	}
	before := []float64{cpuTime(b, servers[0]), cpuTime(b, servers[1])}
	b.ResetTimer()
	for range b.N {
		for i, engine := range engines {
			for _, err := range engine.Extend(b.Context(), batches[i]) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		time.Sleep(5 * time.Millisecond) // until the reads that follow have ended
	}
	for i, what := range []string{"without", "with"} {
		b.ReportMetric((cpuTime(b, servers[i])-before[i])*1e6/float64(b.N*leases), what+"-µs/lease")
	}
}

// cpuTime returns how many seconds of processor time a server has used.
func cpuTime(b testing.TB, server *testsvc.Server) (sum float64) {
	b.Helper()
	info, err := server.Do("INFO", "cpu")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if key == "used_cpu_sys" || key == "used_cpu_user" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += seconds
		}
	}
	return sum
}
