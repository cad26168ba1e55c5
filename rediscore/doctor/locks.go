package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

const (
	probeTTL  = 10 * time.Second
	lookKeys  = 8192 // that SCAN looks at on one master
	lookNames = 1024 // of them, whose locks are inspected
)

// A probe is the name that tryLocks locks, and what it has drawn.
type probe struct {
	name          string
	first, second driver.AcquireRequest // who has it, and who waits for it
	token         uint64                // of first
}

// tryLocks runs the operations on a name of its own, one after the other.
func (s *survey) tryLocks(ctx context.Context) {
	p := &probe{name: probePrefix + string(driver.NewLeaseID())}
	holder := driver.Holder{Label: "holdfast doctor"}
	p.first = driver.AcquireRequest{Name: p.name, LeaseID: driver.NewLeaseID(), TTL: probeTTL, Holder: holder}
	p.second = p.first
	p.second.LeaseID, p.second.Queue, p.second.WaiterTTL = driver.NewLeaseID(), true, probeTTL
	// A name that was never used before, and will not be again, needs no last
	// token.
	defer s.erase(ctx, s.store.Keys().Of(keys.State(), p.name, ""))
	for _, step := range []struct {
		what string
		run  func(context.Context, *probe) error
	}{
		{"acquire", s.probeAcquire}, {"wait", s.probeWait}, {"refresh", s.probeRefresh}, {"extend", s.probeExtend},
		{"downgrade", s.probeDowngrade}, {"inspect", s.probeInspect}, {"release", s.probeRelease},
		{"complete", s.probeComplete}, {"recall", s.probeRecall},
	} {
		limited, cancel := context.WithTimeout(ctx, Limit)
		err := step.run(limited, p)
		cancel()
		if err != nil {
			s.failed("locks", "", fmt.Errorf("%s fails: %w", step.what, err))
			return
		}
	}
	s.found(driver.OK, "locks", "", "acquire, wait, refresh, extend, downgrade, inspect, release, complete and recall do what they should")
}

// errWrong is an answer that no correct store gives.
func errWrong(got any) error {
	return fmt.Errorf("%w: the answer is wrong (%+v): the server does not do what the scripts rely on", driver.ErrUnsupported, got)
}

func (s *survey) probeAcquire(ctx context.Context, p *probe) error {
	reply, err := s.Acquire(ctx, p.first)
	if err == nil && reply.Outcome != driver.Granted {
		err = errWrong(reply)
	}
	p.token = reply.Token
	return err
}

func (s *survey) probeWait(ctx context.Context, p *probe) error {
	reply, err := s.Acquire(ctx, p.second)
	if err == nil && (reply.Outcome != driver.Held || reply.Place != 1) {
		err = errWrong(reply)
	}
	return err
}

func (s *survey) probeRefresh(ctx context.Context, p *probe) error {
	reply := s.Refresh(ctx, []driver.RefreshRequest{{Name: p.name, LeaseID: p.second.LeaseID, WaiterTTL: probeTTL}})[0]
	if reply.Err == nil && (reply.Outcome != driver.Held || reply.Place != 1) {
		return errWrong(reply)
	}
	return reply.Err
}

func (s *survey) probeExtend(ctx context.Context, p *probe) error {
	return s.Extend(ctx, []driver.ExtendRequest{{Name: p.name, LeaseID: p.first.LeaseID, TTL: 2 * probeTTL}})[0]
}

func (s *survey) probeDowngrade(ctx context.Context, p *probe) error {
	return s.Downgrade(ctx, driver.DowngradeRequest{Name: p.name, LeaseID: p.first.LeaseID})
}

func (s *survey) probeInspect(ctx context.Context, p *probe) error {
	lock, err := s.Inspect(ctx, p.name)
	if err == nil && (lock.Mode != driver.Shared || len(lock.Holders) != 1 || lock.Holders[0].Token != p.token || lock.QueueLength != 1) {
		err = errWrong(lock)
	}
	return err
}

// probeRelease hands the lock over to who waits.
func (s *survey) probeRelease(ctx context.Context, p *probe) error {
	if err := s.Release(ctx, driver.ReleaseRequest{Name: p.name, LeaseID: p.first.LeaseID}); err != nil {
		return err
	}
	reply := s.Refresh(ctx, []driver.RefreshRequest{{Name: p.name, LeaseID: p.second.LeaseID, WaiterTTL: probeTTL}})[0]
	if reply.Err == nil && (reply.Outcome != driver.Granted || reply.Token <= p.token) {
		return errWrong(reply)
	}
	return reply.Err
}

func (s *survey) probeComplete(ctx context.Context, p *probe) error {
	return s.Complete(ctx, driver.CompleteRequest{
		Name: p.name, LeaseID: p.second.LeaseID, Record: []byte("probe"), Retention: probeTTL,
	})
}

func (s *survey) probeRecall(ctx context.Context, p *probe) error {
	record, found, err := s.Recall(ctx, p.name)
	if err == nil && (!found || !strings.HasSuffix(string(record.Data), "probe")) {
		err = errWrong(found)
	}
	return err
}

// A sample is what some of the names of the store are like.
type sample struct {
	fences, held, queued int64
	whole                bool // all keys were looked at
	lead                 time.Duration
	leader               string // the name whose token leads most
}

// lookAtKeys samples the names of each master.
func (s *survey) lookAtKeys(ctx context.Context, servers []*server) {
	all := sample{whole: true}
	for _, server := range servers {
		if server.err != nil || server.info.isReplica() {
			continue
		}
		if err := s.sample(ctx, server, &all); err != nil {
			s.found(driver.Warn, "keys", server.addr, "%s", hidden(err))
			return
		}
	}
	extent := "in all"
	if !all.whole {
		extent = "in a sample"
	}
	s.add(driver.Finding{
		Key: "keys", Counts: map[string]int64{"last_tokens": all.fences, "held": all.held, "queued": all.queued},
		Text: fmt.Sprintf("%d names with a last token, %d held, %d places in queues, %s", all.fences, all.held, all.queued, extent),
	})
	s.add(tokenFinding(all.lead, all.leader))
}

// tokenFinding judges by how much tokens lead the clock. One that was granted
// in the order of time never does.
func tokenFinding(lead time.Duration, leader string) driver.Finding {
	f := driver.Finding{Key: "tokens", Measures: map[string]time.Duration{"lead": lead}, Text: "none leads the server's clock"}
	switch {
	case lead > leadLimit:
		f.Level = driver.Warn
		f.Text = fmt.Sprintf("the last token of %q leads the server's clock by %s: the clock went back, or a MinToken or another program lifted it: "+
			"see that the clock is right, and do not delete the key meanwhile", leader, lead.Round(time.Second))
	case lead > 0:
		f.Text = "the furthest leads the server's clock by " + brief(lead)
	}
	return f
}

// sample adds what is on one master.
func (s *survey) sample(ctx context.Context, server *server, all *sample) error {
	seen := map[string]bool{}
	cursor := uint64(0)
	for range lookKeys / rediscore.ScanStep {
		step, cancel := context.WithTimeout(ctx, Limit)
		next, names, err := s.Names(step, server.client, "", cursor, seen)
		cancel()
		if err != nil {
			return err
		}
		if err := s.count(ctx, server, names, all); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
		if len(seen) >= lookNames {
			break
		}
	}
	all.whole = false
	return nil
}

// count adds what some names are like.
func (s *survey) count(ctx context.Context, server *server, names []string, all *sample) error {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	found, err := s.InspectAll(ctx, names, 0)
	if err != nil {
		return err
	}
	now := time.Now().Add(server.timing.offset)
	for _, f := range found {
		if errors.Is(f.Err, driver.ErrPermission) {
			return f.Err
		}
		all.queued += int64(f.Lock.QueueLength)
		if len(f.Lock.Holders) > 0 {
			all.held++
		}
		if f.Lock.LastToken == 0 {
			continue
		}
		all.fences++
		if lead := time.UnixMicro(int64(f.Lock.LastToken)).Sub(now); lead > all.lead {
			all.lead, all.leader = lead, f.Lock.Name
		}
	}
	return nil
}
