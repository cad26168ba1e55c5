package lookdoor

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	// mostSwept is how many locks a list of changes is kept for; a longer list has none.
	mostSwept = 125_000

	sweepLimit = time.Minute
	tooManyFor = time.Minute

	// A short list is made every poll, or every resync if there are events of changes. A longer
	// one takes one part of sweepShare of the time.
	poll       = 2 * time.Second
	resync     = 10 * time.Second
	sweepShare = 20

	// delayMost is for how long a list waits at most for those who ask at about the same time.
	delayMost = 200 * time.Millisecond

	revisionHeader = "Holdfast-Revision"
	sinceHeader    = "Holdfast-Since"
	nextHeader     = "Holdfast-Next-Ms"
)

// sweeps list all locks for the requests that want changes only. A request gets a list that
// begins after it, shared with those that come meanwhile: there is one list at a time,
// however many pages are open.
type sweeps struct {
	house   *door.House
	server  string        // part of revisions, which are this server's own
	running chan struct{} // holds one while a list is under way

	mu     sync.Mutex
	next   *sweep        // that has not begun
	many   time.Time     // when there were too many locks
	number uint64        // of the latest list
	took   time.Duration // for the latest list
	marks  *marks
}

// A sweep is one list of all locks.
type sweep struct {
	done chan struct{} // closed when the rest is set
	err  error
	many bool // too many locks for revisions

	locks    []lockinfo.LockState
	at       []uint64          // the revision of each
	gone     map[string]uint64 // names that nobody has or wants, with their revisions
	revision uint64
	oldest   uint64
	period   time.Duration // from one list to the next
}

func openSweeps(h *door.House) *sweeps {
	return &sweeps{house: h, server: rand.Text(), running: make(chan struct{}, 1), marks: newMarks()}
}

// get returns a list that begins from now on.
func (k *sweeps) get(ctx context.Context) (*sweep, error) {
	k.mu.Lock()
	if time.Since(k.many) < tooManyFor {
		k.mu.Unlock()
		return &sweep{many: true}, nil
	}
	s := k.next
	if s == nil {
		s = &sweep{done: make(chan struct{}), err: errNotListed}
		k.next = s
		k.house.Go("list", k.run)
	}
	k.mu.Unlock()
	select {
	case <-s.done:
		return s, s.err
	case <-ctx.Done():
		return nil, ask.Harmless(ctx, ctx.Err())
	}
}

var errNotListed error = &door.Refusal{
	Status: http.StatusInternalServerError, Code: "internal", Detail: "a fault of the server: its log has more",
}

// run makes the next list.
func (k *sweeps) run(ctx context.Context) {
	k.running <- struct{}{}
	defer func() { <-k.running }()
	s := k.begin()
	defer close(s.done)
	ctx, cancel := ask.Limit(ctx, sweepLimit)
	defer cancel()
	began := time.Now()
	for lock, err := range k.house.Client.List(ctx, "") {
		if err != nil {
			s.err = err
			return
		}
		if door.Reserved(lock.Name) {
			continue
		}
		for i := range lock.Holders {
			lock.Holders[i].LeaseID = "" // it is never shown, and may be a part of a long text
		}
		if s.locks = append(s.locks, lock); len(s.locks) > mostSwept {
			break
		}
	}
	k.settle(s, time.Since(began))
	s.err = nil
}

// begin waits for those who ask at about the same time, an eighth of the time that the latest list
// took, and returns the sweep that they share.
func (k *sweeps) begin() *sweep {
	k.mu.Lock()
	took := k.took
	k.mu.Unlock()
	time.Sleep(min(took/8, delayMost))
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.next
	k.next = nil
	return s
}

// settle notes what has changed since the last list.
func (k *sweeps) settle(s *sweep, took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.period = k.period(took)
	k.took = took
	if len(s.locks) > mostSwept {
		s.locks, s.many, k.many, k.marks = nil, true, time.Now(), newMarks()
		return
	}
	k.number++
	k.marks.update(k.number, s.locks)
	s.revision, s.oldest = k.marks.latest, k.marks.oldest
	s.at = make([]uint64, len(s.locks))
	for i := range s.locks {
		s.at[i] = k.marks.names[s.locks[i].Name].at
	}
	s.gone = make(map[string]uint64, k.marks.gone)
	for name, m := range k.marks.names {
		if m.gone {
			s.gone[name] = m.at
		}
	}
}

// period returns the time from one list to the next after a list that took this long. Of the
// latest two the shorter one counts: in the other one the store may have stood still.
func (k *sweeps) period(took time.Duration) time.Duration {
	if k.took > 0 {
		took = min(took, k.took)
	}
	period := poll
	if k.house.Features.Historian != nil {
		period = resync
	}
	for period < sweepShare*took {
		period *= 2
	}
	return period
}

// pause returns how long to wait for the next list: until an instant that is the same for all
// who follow the locks, so that they share it.
func (s *sweep) pause(now time.Time) time.Duration {
	pause := s.period - time.Duration(now.UnixNano())%s.period
	if pause < s.period/4 {
		pause += s.period
	}
	return pause
}

// since yields the locks that have changed after a revision; 0 yields all. A name that nobody
// has or wants any more is a free lock.
func (s *sweep) since(revision uint64) iter.Seq2[lockinfo.LockState, error] {
	return func(yield func(lockinfo.LockState, error) bool) {
		for i, lock := range s.locks {
			if s.at[i] > revision && !yield(lock, nil) {
				return
			}
		}
		for name, at := range s.gone {
			if revision > 0 && at > revision && !yield(lockinfo.LockState{Name: name}, nil) {
				return
			}
		}
	}
}

// changes answers GET /v1/locks with since in its query: with the locks that have changed
// since that revision, or all of them if it is not known. It reports false where there are no
// revisions.
func (d *desk) changes(w http.ResponseWriter, r *door.Request) (bool, error) {
	q := r.URL.Query()
	if q.Get("prefix") != "" || !r.Caller.MayAll(caller.Read, "") {
		return false, nil
	}
	s, err := d.sweeps.get(r.Context())
	if err != nil || s.many {
		return err != nil, err
	}
	revision := uint64(0)
	if server, number, ok := strings.Cut(q.Get("since"), "-"); ok && server == d.sweeps.server {
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && n >= s.oldest && n <= s.revision {
			revision = n
			w.Header().Set(sinceHeader, q.Get("since"))
		}
	}
	w.Header().Set(revisionHeader, d.sweeps.server+"-"+strconv.FormatUint(s.revision, 10))
	w.Header().Set(nextHeader, strconv.FormatInt(s.pause(time.Now()).Milliseconds(), 10))
	return true, door.Lines(w, r, s.since(revision), wire.LockOf)
}
