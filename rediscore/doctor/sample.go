package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/probe"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

const (
	lookKeys  = 8192 // keys to scan on each master
	lookNames = 1024 // names to inspect on each master, about
)

// A sample sums up some of the names of the store.
type sample struct {
	fences, held, queued int64
	whole                bool   // all keys were scanned
	strange              string // a name in a layout of another version
	lead                 time.Duration
	leader               string // the name whose token is furthest ahead
}

// lookAtKeys samples the names of each master.
func (s *survey) lookAtKeys(ctx context.Context, servers []*server) {
	all := sample{whole: true}
	for _, server := range masters(servers) {
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
	if all.strange != "" {
		s.found(driver.Warn, "layout", "", "another version of holdfast keeps %q, and perhaps others, in a layout that this one does not know: "+
			"each refuses the names of the other while it uses them: let all clients have the same version", all.strange)
	}
}

// tokenFinding judges how far tokens are ahead of the clock. A token that follows the clock never
// is.
func tokenFinding(lead time.Duration, leader string) driver.Finding {
	f := driver.Finding{Key: "tokens", Measures: map[string]time.Duration{"lead": lead}, Text: "none leads the server's clock"}
	switch {
	case lead > leadLimit:
		f.Level = driver.Warn
		f.Text = fmt.Sprintf("the last token of %q leads the server's clock by %s: the clock went back, or a MinToken or another program lifted it: "+
			"see that the clock is right, and do not delete the key meanwhile", leader, lead.Round(time.Second))
	case lead > 0:
		f.Text = "the furthest leads the server's clock by " + probe.Brief(lead)
	}
	return f
}

// sample adds names of one master to all.
func (s *survey) sample(ctx context.Context, server *server, all *sample) error {
	seen := map[string]bool{}
	cursor := uint64(0)
	for range lookKeys / rediscore.ScanStep {
		step, cancel := context.WithTimeout(ctx, Limit)
		next, names, err := s.Names(step, server.client, keys.Locks, "", cursor, seen)
		cancel()
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(names, driver.MaxBatch) {
			if err := s.count(ctx, server, batch, all); err != nil {
				return err
			}
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

// count adds the given names to all.
func (s *survey) count(ctx context.Context, server *server, names []string, all *sample) error {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	found, err := s.InspectAll(ctx, names, 0)
	if err != nil {
		return err
	}
	now := time.Now().Add(server.timing.offset)
	for i, f := range found {
		if errors.Is(f.Err, driver.ErrPermission) {
			return f.Err
		}
		if errors.Is(f.Err, rediscore.ErrLayout) {
			all.strange = names[i]
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
