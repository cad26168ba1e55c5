package systest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestImpatientStreams checks clients that give up waiting for a lock that is held for short times.
// What a refused stream leaves behind must not delay the others. The clients of one name clean up
// with a release under their key; the clients of the other name leave that to the server.
func TestImpatientStreams(t *testing.T) {
	t.Parallel()
	const clients, wait, work, floor = 30, time.Second, 50 * time.Millisecond, .8
	s := newStore(t)
	_, url := startServer(t, s.server.URL)
	ctx, cancel := context.WithTimeout(t.Context(), soak.For(4*time.Second, time.Minute))
	defer cancel()
	var all sync.WaitGroup
	var turns, refusals [2]atomic.Int64
	for i := range 2 * clients {
		c := impatient{url: url, name: fmt.Sprint(t.Name(), "/", i%2), wait: wait, work: work, cleansUp: i%2 == 1}
		all.Go(func() {
			for ctx.Err() == nil {
				worked, err := c.turn(ctx)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					t.Error(err)
					return
				case worked:
					turns[i%2].Add(1)
				default:
					refusals[i%2].Add(1)
				}
			}
		})
	}
	all.Wait()
	got, best := turns[0].Load(), turns[1].Load()
	report.Row(t, fmt.Sprintf("%d clients that wait %s for a lock of %s, by streams", clients, wait, work),
		fmt.Sprintf("%.1f of the turns that they have if they release their keys after each refusal", floor),
		"%d turns and %d refusals, with releases %d and %d", got, refusals[0].Load(), best, refusals[1].Load())
	if float64(got) < floor*float64(best) || best == 0 || refusals[0].Load() == 0 {
		t.Errorf("%d turns and %d refusals, and with releases %d", got, refusals[0].Load(), best)
	}
}

// An impatient client requests a lock by a stream again and again.
type impatient struct {
	url, name  string
	wait, work time.Duration
	cleansUp   bool
}

// turn requests the lock once, and works if the lock is granted.
func (c impatient) turn(ctx context.Context) (worked bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	key := "impatient-" + string(lockinfo.NewLeaseID())
	r, err := c.request(ctx, "/v1/leases?hold=1", key, wire.LeaseRequest{Name: c.name, TTLMS: 30_000, WaitMS: c.wait.Milliseconds()})
	if err != nil {
		return false, err
	}
	lines, failed := make(chan wire.HoldLine), make(chan error, 1)
	go func() { failed <- readLines(ctx, r, lines) }()
	for {
		select {
		case l := <-lines:
			switch {
			case l.Event == "acquired":
				time.Sleep(c.work)
				return true, c.send(ctx, "", wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: c.name, LeaseID: l.LeaseID}})
			case l.Event == "refused" && c.cleansUp:
				return false, c.send(ctx, key, wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: c.name}})
			case l.Event == "refused":
				return false, nil
			}
		case err := <-failed:
			return false, err
		}
	}
}

func (c impatient) request(ctx context.Context, path, key string, body any) (*http.Request, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r, nil
}

// send sends a release.
func (c impatient) send(ctx context.Context, key string, body wire.LeaseRefs) error {
	r, err := c.request(ctx, "/v1/leases/release", key, body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return errors.New("the release is answered " + resp.Status)
	}
	return nil
}
