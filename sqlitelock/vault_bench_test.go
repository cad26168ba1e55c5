package sqlitelock

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/onetimetest"
	"github.com/holdfast-locks/holdfast/onetime"
)

// forgotten inserts n tokens whose memory ended long ago.
func forgotten(t testing.TB, e *Engine, n int) {
	t.Helper()
	must(t, plain(t, e.path), fmt.Sprintf(`
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO onetime SELECT lower(hex(randomblob(32))), 'x', 1, '', x'70', '%s', 0, i - 1000000000, i - 1000000000 FROM n`,
		n, e.clock.bootID))
	must(t, e.conn, `PRAGMA wal_checkpoint(TRUNCATE)`) // so that none runs during the measurement
}

// TestPruneMany checks that one call of Prune deletes 10,000 forgotten tokens.
func TestPruneMany(t *testing.T) {
	const many = 10_000
	e := openNew(t)
	s := onetimetest.New(t, e, nil)
	forgotten(t, e, many)
	began := time.Now()
	n, err := s.Prune(t.Context())
	t.Logf("%d tokens in %s", n, time.Since(began))
	if err != nil || n != many || number(t, plain(t, e.path), onetimes) != 0 {
		t.Errorf("prune: %d, %v; want all %d", n, err, many)
	}
}

// BenchmarkRedeemWhilePruning measures how long 16 goroutines wait for a redeem, with and without a
// million tokens that are pruned at the same time. Run it with -benchtime=1x: an operation is 25
// redeems of each goroutine.
func BenchmarkRedeemWhilePruning(b *testing.B) {
	const many, redeemers, each = 1_000_000, 16, 25
	for _, pruned := range []bool{false, true} {
		b.Run(fmt.Sprintf("pruned=%t", pruned), func(b *testing.B) {
			e := openNew(b)
			s := onetimetest.New(b, e, &onetime.Options{RequestTimeout: 15 * time.Second})
			var wg sync.WaitGroup
			if pruned {
				forgotten(b, e, many)
				wg.Go(func() { _, _ = s.Prune(b.Context()) })
			}
			var mu sync.Mutex
			var total, longest time.Duration
			b.ResetTimer()
			var redeems sync.WaitGroup
			for range redeemers {
				redeems.Go(func() {
					for range each * b.N {
						d, err := redeemOnce(b, s)
						if err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						total, longest = total+d, max(longest, d)
						mu.Unlock()
					}
				})
			}
			redeems.Wait()
			b.StopTimer()
			b.ReportMetric(float64(total.Microseconds())/1000/float64(redeemers*each*b.N), "mean-ms")
			b.ReportMetric(float64(longest.Microseconds())/1000, "max-ms")
			if pruned {
				left := number(b, plain(b, e.path), onetimes) - int64(redeemers*each*b.N)
				b.ReportMetric(float64(many-left), "pruned")
				if left == 0 {
					b.Errorf("the pruning was over before the redeems: the figures mean nothing")
				}
			}
		})
	}
}

// redeemOnce issues a token and returns how long its redeem takes.
func redeemOnce(b *testing.B, s *onetime.Service) (time.Duration, error) {
	secret, err := s.Issue(b.Context(), []byte("payload"), time.Hour)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	_, err = s.Redeem(b.Context(), secret)
	return time.Since(began), err
}
