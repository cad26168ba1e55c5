package rediscore

import (
	"context"
	"sync/atomic"
)

// workers runs jobs, each on its own goroutine. It keeps some idle goroutines for the next jobs
// until life ends: a new goroutine for each request would cost as much as sending it.
type workers struct {
	life   context.Context
	jobs   chan job // to idle goroutines; unbuffered, so that no job waits
	most   int32    // the most goroutines that may be idle
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

// work runs j and later jobs. It ends with life, or when enough other goroutines are idle.
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
