package sqlitelock

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// pairsFor is how long the processes of BenchmarkPairs run.
const pairsFor = 2 * time.Second

// pairs waits for a line of input, acquires and releases separate locks in this number of
// goroutines, and prints how many pairs it has made.
func pairs(e *Engine, goroutines string) error {
	n, err := strconv.Atoi(goroutines)
	if err != nil {
		return err
	}
	client, err := holdfast.New(e, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	var made atomic.Int64
	failed := make(chan error, n)
	var wg sync.WaitGroup
	for i := range n {
		name, end := fmt.Sprintf("%d-%d", os.Getpid(), i), time.Now().Add(pairsFor)
		wg.Go(func() {
			for time.Now().Before(end) {
				lease, err := client.Acquire(context.Background(), name, nil)
				if err == nil {
					err = lease.Release(context.Background())
				}
				if err != nil {
					failed <- err
					return
				}
				made.Add(1)
			}
		})
	}
	wg.Wait()
	fmt.Println("pairs", made.Load())
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// BenchmarkPairs measures how many uncontended locks one and two processes acquire and release per
// second, in total and in the slower process, and the CPU time of a pair. Run it with
// -benchtime=1x.
func BenchmarkPairs(b *testing.B) {
	for _, goroutines := range []int{1, 16} {
		for _, processes := range []int{1, 2} {
			b.Run(fmt.Sprintf("goroutines=%d/processes=%d", goroutines, processes), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "locks.db")
				for range b.N {
					var all []*child
					for range processes {
						all = append(all, spawn(b, "pairs", path, fmt.Sprint(goroutines)))
					}
					for _, c := range all {
						c.hear("ready")
					}
					for _, c := range all {
						c.say("go")
					}
					sum, least, used := 0.0, math.Inf(1), time.Duration(0)
					for _, c := range all {
						n := float64(c.hear("pairs")[0])
						c.end()
						sum, least = sum+n, min(least, n)
						used += c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
					}
					b.ReportMetric(sum/pairsFor.Seconds(), "pairs/s")
					b.ReportMetric(least/pairsFor.Seconds(), "slower/s")
					b.ReportMetric(float64(used.Nanoseconds())/1000/sum, "cpu-µs/pair")
					b.ReportMetric(0, "ns/op")
				}
			})
		}
	}
}
