package sqlitelock

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/onetimetest"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/onetime"
)

const (
	proof = driver.Proof("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")

	onetimes = `SELECT count(*) FROM onetime`
	payloads = `SELECT count(payload) FROM onetime`
)

// deposit stores a token.
func deposit(t testing.TB, e *Engine, proof driver.Proof, ttl, memory time.Duration) {
	t.Helper()
	req := driver.DepositRequest{Digest: proof.Digest(), By: lockinfo.NewLeaseID(), Payload: []byte("payload"), TTL: ttl, Memory: memory}
	if err := e.Deposit(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// redeem redeems a token, and fails t unless the reply has this state, and the payload if it is
// granted.
func redeem(t testing.TB, e *Engine, proof driver.Proof, by lockinfo.LeaseID, want driver.VaultState, granted bool) {
	t.Helper()
	reply, err := e.Redeem(t.Context(), driver.RedeemRequest{Proof: proof, By: by})
	if err != nil || reply.State != want || reply.Granted != granted || granted != (string(reply.Payload) == "payload") {
		t.Fatalf("redeem: %s, granted %t, %v; want %s, %t", reply.State, reply.Granted, err, want, granted)
	}
}

// isState checks the state that Peek returns, and returns the time until it ends.
func isState(t testing.TB, e *Engine, proof driver.Proof, want driver.VaultState) time.Duration {
	t.Helper()
	reply, err := e.Peek(t.Context(), proof)
	if err != nil || reply.State != want {
		t.Fatalf("peek: %s, %v; want %s", reply.State, err, want)
	}
	return reply.ExpiresIn
}

// prune calls Prune until nothing is due, and returns how many tokens it has deleted.
func prune(t testing.TB, e *Engine) (deleted int) {
	t.Helper()
	for more := true; more; {
		var n int
		var err error
		if n, more, err = e.Prune(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		deleted += n
	}
	return deleted
}

// TestVaultSurvives checks that tokens, and RedeemGrace, survive closing the database and a reboot.
func TestVaultSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	h := newHost("one boot")
	e := h.open(t, path)
	taken, late := "a"+proof[1:], "b"+proof[1:]
	for _, d := range []driver.Proof{proof, taken, late} {
		deposit(t, e, d, 48*time.Hour, 24*time.Hour)
	}
	by := lockinfo.NewLeaseID()
	redeem(t, e, taken, by, driver.Redeemed, true)
	_ = e.Close()

	wall := h.wall
	h = newHost("another boot")
	h.boot, h.wall = time.Second, wall.Add(driver.RedeemGrace-time.Second) // within RedeemGrace
	e = h.open(t, path)
	redeem(t, e, taken, by, driver.Redeemed, true)
	redeem(t, e, late, by, driver.Redeemed, true)
	if left, want := isState(t, e, proof, driver.Fresh), 48*time.Hour-driver.RedeemGrace+time.Second; left < want-time.Millisecond || left > want+time.Millisecond {
		t.Errorf("after the reboot %s are left, want %s", left, want)
	}
	h.pass(2*time.Second, 2*time.Second)
	redeem(t, e, taken, by, driver.Redeemed, false)
	redeem(t, e, late, by, driver.Redeemed, true)
	if n := prune(t, e); n != 0 || number(t, plain(t, path), payloads) != 2 {
		t.Errorf("prune deleted %d tokens and left %d payloads, want 0 and 2", n, number(t, plain(t, path), payloads))
	}
	h.pass(driver.RedeemGrace, driver.RedeemGrace)
	redeem(t, e, late, by, driver.Redeemed, false)
	h.pass(48*time.Hour, 48*time.Hour)
	isState(t, e, proof, driver.Expired)
	prune(t, e)
	if n := number(t, plain(t, path), payloads); n != 0 {
		t.Errorf("%d payloads are left after the TTL", n)
	}
	h.pass(24*time.Hour, 24*time.Hour)
	isState(t, e, proof, driver.Unknown)
	if n := prune(t, e); n != 3 || number(t, plain(t, path), onetimes) != 0 {
		t.Errorf("prune deleted %d tokens, want all 3", n)
	}
}

// TestVaultAndWallClock checks that a step of the wall clock neither ends a token nor keeps it, in
// the boot that stored it, and that Prune agrees.
func TestVaultAndWallClock(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	conn := plain(t, e.path)
	for _, step := range []time.Duration{1000 * time.Hour, -2000 * time.Hour} {
		deposit(t, e, proof, time.Hour, time.Hour)
		h.pass(time.Hour-time.Millisecond, step)
		if left := isState(t, e, proof, driver.Fresh); left != time.Millisecond {
			t.Errorf("after a step of %s %s are left, want 1ms", step, left)
		}
		if n := prune(t, e); n != 0 || number(t, conn, payloads) != 1 {
			t.Errorf("after a step of %s prune took the payload of a fresh token", step)
		}
		h.pass(time.Millisecond, step)
		redeem(t, e, proof, lockinfo.NewLeaseID(), driver.Expired, false)
		if n := prune(t, e); n != 0 || number(t, conn, payloads) != 0 {
			t.Errorf("after a step of %s prune deleted %d tokens and left %d payloads", step, n, number(t, conn, payloads))
		}
		h.pass(time.Hour-time.Millisecond, -step)
		isState(t, e, proof, driver.Expired)
		h.pass(time.Millisecond, step)
		isState(t, e, proof, driver.Unknown)
		if n := prune(t, e); n != 1 {
			t.Errorf("after a step of %s prune deleted %d tokens, want 1", step, n)
		}
	}
}

// TestPruneIsBounded checks that one step of Prune deletes at most as many tokens as its limit,
// finds its rows by an index, and that several steps prune all tokens that are due.
func TestPruneIsBounded(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	conn := plain(t, e.path)
	fill := func(n int, memory time.Duration) {
		for range n {
			deposit(t, e, driver.Proof(lockinfo.NewLeaseID()+lockinfo.NewLeaseID()), time.Minute, memory)
		}
	}
	fill(10, time.Hour)
	fill(10, time.Second)
	fill(10, time.Hour)
	h.pass(2*time.Minute, 2*time.Minute)
	total := 0
	for more := true; more; {
		before := number(t, conn, payloads)
		var n int
		var err error
		if n, more, err = e.Prune(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		total += n
		if emptied := before - number(t, conn, payloads); n > 4 || emptied > 8 || emptied == 0 && n == 0 {
			t.Fatalf("a step with limit 4 deleted %d tokens, and %d payloads", n, emptied)
		}
	}
	if total != 10 {
		t.Errorf("prune deleted %d tokens, want 10", total)
	}
	if n, left := number(t, conn, onetimes), number(t, conn, payloads); n != 20 || left != 0 {
		t.Errorf("%d tokens and %d payloads are left, want 20 and 0", n, left)
	}
	for _, query := range []string{pruneSQL, emptySQL, moreSQL} {
		if plan := strings.Join(planOf(t, plain(t, e.path), query, "boot", 1, 1, 1), "\n"); strings.Count(plan, "INDEX onetime_by_") != 2 || strings.Contains(plan, "SCAN onetime") {
			t.Errorf("%s\nis planned as\n%s\nwant the two indexes", query, plan)
		}
	}
}

// planOf returns how SQLite runs a query.
func planOf(t testing.TB, c *conn, query string, args ...any) (plan []string) {
	t.Helper()
	type step struct {
		id, parent, unused int
		text               string
	}
	steps, err := scanAll(c, "EXPLAIN QUERY PLAN "+query, args, func(s *step) []any { return []any{&s.id, &s.parent, &s.unused, &s.text} })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		plan = append(plan, s.text)
	}
	return plan
}

// TestVaultIsFlushed checks that deposits, redeems and revocations are flushed to the disk before
// the reply, so that a payload is not handed out again after a power cut.
func TestVaultIsFlushed(t *testing.T) {
	const normal, full = 1, 2
	e := openNew(t)
	var levels []int64
	boot := e.clock.boot // read inside the transaction
	e.clock.boot = func() (time.Duration, error) {
		levels = append(levels, number(t, e.conn, `PRAGMA synchronous`))
		return boot()
	}
	deposit(t, e, proof, time.Hour, time.Hour)
	redeem(t, e, proof, lockinfo.NewLeaseID(), driver.Redeemed, true)
	if _, err := e.Revoke(t.Context(), proof.Digest()); err != nil {
		t.Error(err)
	}
	prune(t, e)
	if !slices.Equal(levels, []int64{full, full, full, normal}) {
		t.Errorf("deposit, redeem, revoke and prune run with the levels %d", levels)
	}
}

// TestPayloadIsOverwritten checks that a payload is overwritten in the file when it is deleted. The
// log, which may keep it longer, is deleted when the last engine closes.
func TestPayloadIsOverwritten(t *testing.T) {
	payload := bytes.Repeat([]byte("very secret "), driver.MaxPayload/12)
	h := newHost("boot")
	e := openOn(t, h)
	holds := func() bool {
		all, err := os.ReadFile(e.path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(all, []byte("very secret"))
	}
	for i := range 3 {
		if err := e.Deposit(t.Context(), driver.DepositRequest{
			Digest: (driver.Proof(fmt.Sprint(i)) + proof[1:]).Digest(), By: lockinfo.NewLeaseID(), Payload: payload, TTL: time.Minute, Memory: time.Hour,
		}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, e.conn, `PRAGMA wal_checkpoint(TRUNCATE)`)
	if !holds() {
		t.Fatal("the file does not hold the payload: the search finds nothing at all")
	}
	if _, err := e.Redeem(t.Context(), driver.RedeemRequest{Proof: "0" + proof[1:], By: lockinfo.NewLeaseID()}); err != nil {
		t.Error(err)
	}
	if reply, err := e.Revoke(t.Context(), ("1" + proof[1:]).Digest()); err != nil || reply.State != driver.Fresh {
		t.Errorf("revoke: %+v, %v", reply, err)
	}
	if n := number(t, e.conn, payloads); n != 2 {
		t.Errorf("%d payloads after one of 3 was revoked, want 2", n)
	}
	h.pass(2*time.Minute, 2*time.Minute)
	prune(t, e)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if holds() {
		t.Error("the file still holds a payload that was deleted")
	}
	if _, err := os.Stat(e.path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log is still there: %v", err)
	}
}

// TestRedeemByMany checks that one of 200 concurrent redeems of a token gets the payload.
func TestRedeemByMany(t *testing.T) {
	onetimetest.RedeemByMany(t, onetimetest.New(t, openNew(t), &onetime.Options{RequestTimeout: 15 * time.Second}))
}
