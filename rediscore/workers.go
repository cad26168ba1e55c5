package rediscore

import (
	"context"
	"sync/atomic"
)

// workers run jobs, each on a goroutine of its own. Some idle goroutines stay for the next
// jobs until life ends: a new goroutine for each request would cost as much as sending it.
type workers struct {
	life   context.Context
	jobs   chan job // to idle goroutines; unbuffered, so that no job waits
	most   int32    // idle goroutines
	parked atomic.Int32
}

// A job is a unit of work.
type job interface{ do() }

// mostParked bounds the idle goroutines.
const mostParked = 8

func newWorkers(life context.Context, most int32) *workers {
	return &workers{life: life, jobs: make(chan job), most: most}
}

// run starts j. It does not block.
func (c *workers) run(j job) {
	select {
	case c.jobs <- j:
	default:
		go c.work(j)
	}
}

// work ends with life, or if enough other goroutines are idle.
func (c *workers) work(j job) {
	for {
		j.do()
		if c.parked.Add(1) > c.most {
			c.parked.Add(-1)
			return
		}
		select {
		case j = <-c.jobs:
			c.parked.Add(-1)
		case <-c.life.Done():
			c.parked.Add(-1)
			return
		}
	}
}
