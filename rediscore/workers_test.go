package rediscore

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// A task is a job of a test. It reports its start, and may wait.
type task struct{ begun, end chan struct{} }

func (t *task) do() {
	t.begun <- struct{}{}
	<-t.end
}

// goroutines returns how many goroutines the workers have, the only ones in this bubble.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "rediscore.(*workers).work(")
}

// TestWorkers checks that jobs that hang delay no other, that a few goroutines remain for later
// jobs, which start none, and that all end with life.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		c := newWorkers(life, mostParked)
		const many = 5 * mostParked
		run := func(n int) (all []*task) {
			for range n {
				j := &task{make(chan struct{}, 1), make(chan struct{})}
				all = append(all, j)
				c.run(j)
			}
			synctest.Wait()
			for i, j := range all {
				select {
				case <-j.begun:
				default:
					t.Fatalf("job %d of %d waits for another", i, n)
				}
			}
			return all
		}
		finish := func(all []*task) {
			for _, j := range all {
				close(j.end)
			}
			synctest.Wait()
		}
		finish(run(many))
		if n := goroutines(); n != mostParked {
			t.Errorf("%d goroutines stay without a job, want %d", n, mostParked)
		}
		all := run(mostParked)
		if n := goroutines(); n != mostParked {
			t.Errorf("%d goroutines for %d jobs", n, mostParked)
		}
		all = append(all, run(many)...)
		end()
		synctest.Wait()
		if n := goroutines(); n != len(all) {
			t.Errorf("%d goroutines for %d jobs", n, len(all))
		}
		finish(all)
		if n := goroutines(); n != 0 {
			t.Errorf("%d goroutines after the end", n)
		}
	})
}
