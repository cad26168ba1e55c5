package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const everyTTL = 500 * time.Millisecond

// runEverySecond is a job: a replica of a schedule that is due every second. Its runs take 50 ms
// and count their begin and end in a resource. With Waits every scheduled time is run, however
// late.
func runEverySecond(ctx context.Context, j traffic.Job) (any, error) {
	client, resource, done, err := withResource(ctx, j)
	if err != nil {
		return nil, err
	}
	defer done()
	count := func(ctx context.Context, what string, run holdfast.EveryRun) error {
		key := fmt.Sprintf("%s/%s/%d", what, run.Name, run.Scheduled.Unix())
		return resource.Do(ctx, resource.B().Arbitrary("INCR", key).Build()).Error()
	}
	opts := &holdfast.EveryOptions{TTL: everyTTL, StartWithin: 2 * everyTTL, CatchUp: j.Waits}
	if j.Waits {
		opts.StartWithin = time.Hour
	}
	err = client.Every(ctx, j.Name, holdfast.Periodic(time.Unix(0, 0), time.Second), opts, func(ctx context.Context, run holdfast.EveryRun) error {
		if err := count(ctx, "begun", run); err != nil {
			return err
		}
		if run.Attempt == 1 { // killing every attempt would double the pause each time
			j.Out("begun")
		}
		time.Sleep(50 * time.Millisecond)
		return count(ctx, "ended", run)
	})
	if ctx.Err() != nil {
		return "stopped", client.Close()
	}
	return nil, err
}

// TestEveryUnderKills kills three processes with one schedule again and again, a third of the time
// in a run, sometimes all at once. It checks that each scheduled time is settled once: done or
// missed.
func TestEveryUnderKills(t *testing.T) {
	s := newStore(t)
	for name, each := range map[string]bool{"late runs are skipped": false, "each is run": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyUnderKills(t, s, name, each)
		})
	}
}

func everyUnderKills(t *testing.T, s *store, name string, each bool) {
	begun := make(chan int, 1000) // the crew that began a run
	start := func(who int) *traffic.Crew {
		c := traffic.Start(t, traffic.Job{Job: "run every second", Store: s.server.URL, Resource: s.server.URL, Name: name, Waits: each})
		c.Begin()
		go c.Follow(func([]byte) bool {
			begun <- who
			return true
		})
		return c
	}
	crews := make([]*traffic.Crew, 3)
	for who := range crews {
		crews[who] = start(who)
	}
	client := newClient(t, s.engine, nil)
	began, length := time.Now(), soak.For(14*time.Second, 200*time.Second)
	goOn := func() bool { // a busy machine needs longer between the kills
		st, err := client.Records().Schedule(t.Context(), name)
		lasted := time.Since(began)
		return lasted < length || lasted < length+3*time.Minute && (err != nil || st.Done+st.Missed < 5 || st.Done == 0)
	}
	kills, inRuns := 0, 0
	for goOn() {
		victims := []int{rand.N(len(crews))}
		switch rand.N(6) {
		case 0:
			victims = []int{0, 1, 2}
		case 1, 2: // the process that begins the next run: later attempts are killed only by chance
			for len(begun) > 0 {
				<-begun
			}
			select {
			case victims[0] = <-begun:
				inRuns++
			case <-time.After(5 * time.Second):
			}
			time.Sleep(rand.N(60 * time.Millisecond))
		default:
			time.Sleep(rand.N(time.Second))
		}
		for _, who := range victims {
			crews[who].Kill()
			kills++
		}
		if len(victims) > 1 {
			time.Sleep(rand.N(3 * time.Second))
		}
		for _, who := range victims {
			crews[who] = start(who)
		}
		time.Sleep(rand.N(time.Second))
	}
	eventually(t, "somebody leads, and nobody runs", func() bool {
		st, err := client.Records().Schedule(t.Context(), name)
		return err == nil && st.Led && !st.Running
	})
	for _, c := range crews {
		c.Kill()
	}
	st, err := client.Records().Schedule(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	checkEvery(t, s, name, st, kills, inRuns)
	if each && st.Missed > 0 {
		t.Errorf("%d missed, though each is to be run: %+v", st.Missed, st.Gaps)
	}
}

// checkEvery compares the record of the schedule with the counts in the resource.
func checkEvery(t *testing.T, s *store, name string, st holdfast.ScheduleState, kills, inRuns int) {
	t.Helper()
	times, silent, twice, begun := 0, 0, 0, 0
	for at := st.Began.Truncate(time.Second).Add(time.Second); !at.After(st.Settled); at = at.Add(time.Second) {
		times++
		count := func(what string) int {
			text, _ := s.do(t, "GET", what+"/"+name+"/"+strconv.FormatInt(at.Unix(), 10)).ToString()
			n, _ := strconv.Atoi(text)
			return n
		}
		begun += count("begun")
		switch ended := count("ended"); {
		case ended == 0:
			silent++
		case ended > 1:
			twice += ended - 1
		}
	}
	report.Row(t, "schedule of every second, "+name+", SIGKILL of 3 replicas", "each scheduled time done once or missed",
		"%d scheduled times, %d kills, %d of them aimed at a run: %d done, %d missed, %d runs begun, %d ended again after a kill at their end", times, kills, inRuns, st.Done, st.Missed, begun, twice)
	switch {
	case int(st.Done+st.Missed) != times:
		t.Errorf("%d done and %d missed of %d scheduled times", st.Done, st.Missed, times)
	case silent > int(st.Missed):
		t.Errorf("%d scheduled times have no run that has ended, and %d were missed", silent, st.Missed)
	case twice > inRuns:
		t.Errorf("%d runs have ended again, with %d kills in runs", twice, inRuns)
	case times < 4 || st.Done < 1 || kills < 3:
		t.Errorf("%d scheduled times, %d done, %d kills: it shows too little", times, st.Done, kills)
	}
}
