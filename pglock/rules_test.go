package pglock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A thing is a row of lease or place, as far as the rules use it.
type thing struct {
	id       lockinfo.LeaseID
	mode     lockinfo.Mode
	left     time.Duration // until it ends; an hour or more, so that the clock does not matter
	released bool          // for a lease
	once     bool          // for a place
	minToken uint64        // for a place
}

// A scene is the state of one name.
type scene struct {
	leases, places []thing
	last           uint64
	recorded       bool
	cancelled      bool // whether the request's lease ID is cancelled
}

var (
	sceneModes = []lockinfo.Mode{lockinfo.Exclusive, lockinfo.Shared, lockinfo.Shared, lockinfo.Permits(1, 3), lockinfo.Permits(2, 3), lockinfo.Permits(1, 2)}
	sceneEnds  = []time.Duration{-time.Hour, time.Hour, 2 * time.Hour, 3 * time.Hour}
)

func pick[T any](all []T) T { return all[rand.IntN(len(all))] }

func sceneID(n int) lockinfo.LeaseID {
	return lockinfo.LeaseID(fmt.Sprintf("%032x", n))
}

// newScene returns a valid state: the live leases fit together, and all rows are of one kind.
func newScene(clock uint64) (s scene) {
	var v rules.View
	kind := pick(sceneModes)
	for i := range rand.IntN(4) {
		l := thing{id: sceneID(i), mode: pick(sceneModes), left: pick(sceneEnds), released: rand.IntN(4) == 0}
		if l.mode.Limit() != kind.Limit() || (l.mode == lockinfo.Exclusive && len(s.leases) > 0) || slices.ContainsFunc(s.leases, func(o thing) bool { return o.mode == lockinfo.Exclusive }) {
			continue
		}
		if l.left > 0 && !v.Fits(l.mode) {
			continue
		}
		v.AddLease(l.mode, l.left)
		s.leases = append(s.leases, l)
	}
	for i := range rand.IntN(4) {
		p := thing{id: sceneID(10 + i), mode: pick(sceneModes), left: pick(sceneEnds), once: rand.IntN(3) == 0, minToken: pick([]uint64{0, 0, clock + uint64(time.Minute.Microseconds())})}
		if p.mode.Limit() == kind.Limit() {
			s.places = append(s.places, p)
		}
	}
	s.last = pick([]uint64{clock - 1000, clock - 1000, clock + uint64(time.Hour.Microseconds()), driver.MaxToken, driver.MaxToken - 1})
	s.recorded, s.cancelled = rand.IntN(3) == 0, rand.IntN(8) == 0
	return s
}

// settle applies package rules to the scene: it removes what has expired, gives up places and
// serves the queue.
func (s *scene) settle(clock uint64) rules.View {
	over := func(t thing) bool { return t.left <= 0 }
	s.leases, s.places = slices.DeleteFunc(s.leases, over), slices.DeleteFunc(s.places, over)
	v := rules.View{Recorded: s.recorded}
	for _, l := range s.leases {
		v.AddLease(l.mode, l.left)
	}
	s.places = slices.DeleteFunc(s.places, func(p thing) bool { return v.GivesUp(p.once) })
	head := func() {
		v.Queued = false
		for _, p := range s.places {
			v.AddPlace(p.mode, p.once, p.left)
		}
	}
	for head(); v.Due(); head() {
		p := s.places[0]
		token, err := rules.NextToken(s.last, rules.LeastToken(clock, p.minToken))
		if err != nil {
			v.Stuck = err
			break
		}
		s.places, s.last = s.places[1:], token
		s.leases = append(s.leases, p)
		v.AddLease(p.mode, p.left)
	}
	return v
}

// String describes the holders and waiters in their order.
func (s *scene) String() string {
	var b strings.Builder
	var leases []string
	for _, l := range s.leases {
		leases = append(leases, fmt.Sprint(l.id[28:], " ", l.mode, " ", l.released, "; "))
	}
	slices.Sort(leases)
	fmt.Fprint(&b, leases, " queue ")
	for _, p := range s.places {
		fmt.Fprint(&b, p.id[28:], " ", p.mode, "; ")
	}
	return b.String()
}

// A stage is a transaction for scenes, which is not committed.
type stage struct {
	t  *testing.T
	e  *Engine
	tx pgx.Tx
}

func (s *stage) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.tx.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// build writes the rows of a scene, with instants relative to the clock.
func (s *stage) build(sc *scene, request lockinfo.LeaseID, clock uint64) {
	at := func(d time.Duration) int64 { return int64(clock) + d.Microseconds() }
	counted := 0
	s.exec(`INSERT INTO holdfast.lock (name, last_token) VALUES ('t', $1)`, int64(sc.last))
	for i, l := range sc.leases {
		m := modes.Of(l.mode)
		if l.mode == lockinfo.Exclusive {
			s.exec(`UPDATE holdfast.lock SET lease_id = $1, granted = $2, expiry = $3, released = $4`, string(l.id), at(-2*time.Hour), at(l.left), l.released)
			continue
		}
		counted++
		s.exec(`INSERT INTO holdfast.lease (name, token, lease_id, mode, permit_limit, permits, holder, granted, expiry, released) VALUES ('t', $1, $2, $3, $4, $5, '', $6, $7, $8)`,
			int64(i+1), string(l.id), int32(m.Kind), int32(m.Limit), int32(m.Permits), at(-2*time.Hour), at(l.left), l.released)
	}
	for i, p := range sc.places {
		m := modes.Of(p.mode)
		s.exec(`INSERT INTO holdfast.place (name, seq, lease_id, mode, permit_limit, permits, min_token, once, holder, asked, expiry, inbox) VALUES ('t', $1, $2, $3, $4, $5, $6, $7, '', $8, $9, '')`,
			int64(i+7), string(p.id), int32(m.Kind), int32(m.Limit), int32(m.Permits), int64(p.minToken), p.once, at(-2*time.Hour), at(p.left))
	}
	s.exec(`UPDATE holdfast.lock SET leases = $1, places = $2, head = 5, tail = 20`, int32(counted), int32(len(sc.places)))
	if sc.recorded {
		s.exec(`INSERT INTO holdfast.record (name, lease_id, expiry, data) VALUES ('t', '', $1, 'done')`, at(time.Hour))
	}
	if sc.cancelled {
		s.exec(`INSERT INTO holdfast.cancelled (lease_id, expiry) VALUES ($1, $2)`, string(request), at(time.Hour))
		s.exec(`UPDATE holdfast.lock SET cancels = $1`, at(time.Hour))
	}
}

// read returns the scene in the tables.
func (s *stage) read() (sc scene) {
	s.t.Helper()
	var all []state
	if err := s.tx.QueryRow(s.t.Context(), `SELECT holdfast.state(ARRAY['t'], 100)`).Scan(inJSON(&all)); err != nil || len(all) != 1 {
		s.t.Fatalf("%d states, error %v", len(all), err)
	}
	for _, l := range all[0].Leases {
		sc.leases = append(sc.leases, thing{id: l.LeaseID, mode: l.mode(), released: l.Released})
	}
	for _, p := range all[0].Queue {
		sc.places = append(sc.places, thing{id: p.LeaseID, mode: p.mode()})
	}
	if all[0].QueueLength != len(sc.places) {
		s.t.Fatalf("the queue has %d places, and its length is %d", len(sc.places), all[0].QueueLength)
	}
	return sc
}

// play runs do in a transaction that is rolled back.
func (s *stage) play(do func()) {
	s.t.Helper()
	if err := s.e.run(s.t.Context(), waiting, func(ctx context.Context, conn *pgx.Conn) (err error) {
		if s.tx, err = conn.Begin(ctx); err == nil {
			do()
			err = s.tx.Rollback(ctx)
		}
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

// TestRules checks that for thousands of states and requests the function acquire decides as
// package rules does, and leaves the same leases and places. INVARIANTS I1, I7, I12.
func TestRules(t *testing.T) {
	server := testsvc.Postgres(t)
	s := &stage{t: t, e: open(t, urlOf(server, "postgres", "postgres", ""))}
	n, seen := 1200, map[string]int{}
	if testing.Short() {
		n = 400
	}
	for range n {
		s.play(func() {
			clock := uint64(time.Now().UnixMicro())
			sc := newScene(clock)
			req := driver.AcquireRequest{
				Name: "t", LeaseID: sceneID(pick([]int{0, 1, 10, 11, 99, 99, 99})), Mode: pick(sceneModes), TTL: time.Hour,
				First: rand.IntN(4) == 0, Once: rand.IntN(4) == 0, Queue: rand.IntN(2) == 0, WaiterTTL: time.Hour,
				MinToken: pick([]uint64{0, 0, 0, clock + 60e6, clock + 7200e6}),
			}
			s.build(&sc, req.LeaseID, clock)
			before := fmt.Sprintf("%+v\nrequest %+v", sc, req)
			v := sc.settle(clock)
			v.Cancelled = sc.cancelled
			v.Own = slices.ContainsFunc(sc.leases, func(l thing) bool { return l.id == req.LeaseID && !l.released })
			v.Placed = slices.ContainsFunc(sc.places, func(p thing) bool { return p.id == req.LeaseID })
			want, least, wantErr := v.Judge(&req, clock)
			if want == driver.Granted && !v.Own && wantErr == nil {
				_, wantErr = rules.NextToken(sc.last, least)
			}
			switch {
			case wantErr != nil:
			case want == driver.Granted && !v.Own:
				sc.leases = append(sc.leases, thing{id: req.LeaseID, mode: req.Mode})
			case want == driver.Held && req.Queue && !v.Placed:
				sc.places = append(sc.places, thing{id: req.LeaseID, mode: req.Mode})
			}
			got, err := s.acquire(&req)
			sameError := (err == nil) == (wantErr == nil) && driver.Class(err) == driver.Class(wantErr)
			if !sameError || wantErr == nil && got != want {
				t.Errorf("%s:\nit decides %v, %v; want %v, %v", before, got, err, want, wantErr)
			}
			if now := s.read(); now.String() != sc.String() {
				t.Errorf("%s:\nit leaves %s, want %s", before, now.String(), sc.String())
			}
			seen[fmt.Sprint(want, driver.Class(wantErr), v.Own)]++
		})
		if t.Failed() {
			return
		}
	}
	t.Log(seen)
	if len(seen) < 9 {
		t.Errorf("only %d outcomes were seen: %v", len(seen), seen)
	}
}

// acquire calls the function in the transaction.
func (s *stage) acquire(req *driver.AcquireRequest) (driver.Outcome, error) {
	s.t.Helper()
	m := modes.Of(req.Mode)
	var token *int64
	var a answer
	err := s.tx.QueryRow(s.t.Context(), `SELECT token, answer FROM holdfast.acquire('t', $1, $2, $3, $4, $5, '{}', $6, $7, $8, $9, $10, 'inbox', false)`,
		string(req.LeaseID), int32(m.Kind), int32(m.Limit), int32(m.Permits), micros(req.TTL), tokenOf(req.MinToken), req.First, req.Once, req.Queue, micros(req.WaiterTTL),
	).Scan(&token, inJSON(&a))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != nil {
		return driver.Granted, nil
	}
	reply, err := a.reply(req.Mode, req.MinToken)
	return reply.Outcome, err
}
