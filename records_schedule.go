package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A ScheduleState is the state of a schedule, and the replicas that run it now.
type ScheduleState struct {
	ScheduleRecord // Began is zero if Every was never called, or the schedule was forgotten

	Running    bool          // the lock of the name is held: a run is going on
	Runner     Holder        // the holder of that lock; zero if no run is going on
	RunningFor time.Duration // how long the run has been going on, by the store's clock

	Led        bool     // a process does the run, or waits for the next scheduled time
	Leader     Holder   // that process
	StandingBy []Holder // the processes that lead next, in their order
}

// Schedule reports the state of a schedule: its last run, the next, those that were
// missed, and who leads and waits to lead. It sends three requests, so the parts of the answer
// are not of one instant. A name with a do-once result is ErrKindMismatch.
func (r Records) Schedule(ctx context.Context, name string) (ScheduleState, error) {
	return consult(ctx, r.client, "status of", name, func(ctx context.Context, recorder driver.Recorder) (ScheduleState, error) {
		return r.client.scheduleState(ctx, recorder, name)
	})
}

func (c *Client) scheduleState(ctx context.Context, recorder driver.Recorder, name string) (s ScheduleState, err error) {
	lock, err := c.inspect(ctx, name)
	if err != nil {
		return s, err
	}
	if live := lock.Live(); len(live) > 0 {
		s.Running, s.Runner, s.RunningFor = true, live[0].Holder, live[0].Since
	}
	stand, err := c.inspect(ctx, name+ScheduleSuffix)
	if err != nil {
		return s, err
	}
	if live := stand.Live(); len(live) > 0 {
		s.Led, s.Leader = true, live[0].Holder
	}
	for _, w := range stand.Queue {
		s.StandingBy = append(s.StandingBy, w.Holder)
	}
	// Read the record last: a run that ends meanwhile is then seen as running or as done.
	r, _, err := scheduleOf(ctx, recorder, name)
	if r != nil {
		s.ScheduleRecord = *r
	}
	return s, err
}
