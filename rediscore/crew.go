package rediscore

import (
	"context"
	"sync/atomic"
)

// A crew runs jobs, each on a goroutine that runs nothing else meanwhile. Some
// goroutines that have nothing to do stay for the next jobs, until life ends:
// to make one for each request would cost as much as to send it.
type crew struct {
	life   context.Context
	jobs   chan job // to those who are parked; unbuffered, so that no job waits
	most   int32    // of them
	parked atomic.Int32
}

// A job is what somebody of a crew is to do.
type job interface{ do() }

// mostParked bounds how many goroutines stay without a job.
const mostParked = 8

func newCrew(life context.Context, most int32) *crew {
	return &crew{life: life, jobs: make(chan job), most: most}
}

// run has j done. It does not block.
func (c *crew) run(j job) {
	select {
	case c.jobs <- j:
	default:
		go c.work(j)
	}
}

// work ends with life, or when enough others are parked.
func (c *crew) work(j job) {
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
