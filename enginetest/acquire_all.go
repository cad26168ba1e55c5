package enginetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func acquireAllRequirements() []Requirement {
	return []Requirement{
		{"AcquireAllTakesAll", "I1", canAcquireAll, acquireAllTakesAll,
			"AcquireAll must record all the leases, as Acquire would each, and answer the tokens in order"},
		{"AcquireAllTakesAllOrNone", "I1", canAcquireAll, acquireAllAllOrNone,
			"AcquireAll must record no lease if one name is held, and say which name, by whom and for how long"},
		{"AcquireAllTakesAllOrNoneUnderContention", "I1", canAcquireAll, acquireAllContention,
			"of many AcquireAll for the same names at once, in any order of the names, one must be granted"},
		{"AcquireAllDoesNotBarge", "I7", both(canAcquireAll, canQueue), acquireAllDoesNotBarge,
			"AcquireAll must be refused a name while somebody has a place"},
		{"AcquireAllRepeatIsGrantedAgain", "I6", canAcquireAll, acquireAllRepeat,
			"a repeated AcquireAll must be granted with the same tokens, and lengthen, never shorten, the leases"},
		{"AcquireAllObeysCancel", "I5", canAcquireAll, acquireAllCancelled,
			"AcquireAll must answer Cancelled and record no lease if one lease ID was cancelled before"},
		{"AcquireAllTokensGrow", "I2", canAcquireAll, acquireAllTokensGrow,
			"each token of AcquireAll must be greater than every earlier one of its name, and than its MinToken"},
		{"AcquireAllErrorChangesNothing", "I12", canAcquireAll, acquireAllError,
			"AcquireAll must record no lease if one request is invalid or of another kind"},
		{"AcquireAllTakesMaxBatch", "", canAcquireAll, acquireAllTakesMaxBatch,
			"AcquireAll must take MaxBatch requests in one call"},
		{"AcquireAllRefusesWhole", "I1", canAcquireAll, acquireAllAnyNames,
			"AcquireAll of any names must take all, or fail with ErrUnsupported and change nothing"},
	}
}

func canAcquireAll(t *T) bool { return t.Features.AllAcquirer != nil }

// askTagged returns requests for names that begin alike, with a hash tag, so
// that they are in one part of a store that is divided by names.
func askTagged(ttl time.Duration, names ...string) []driver.AcquireRequest {
	reqs := make([]driver.AcquireRequest, len(names))
	for i, name := range names {
		reqs[i] = ask("{tag}"+name, ttl)
	}
	return reqs
}

// acquireAll makes one attempt that must not fail.
func (t *T) acquireAll(reqs []driver.AcquireRequest) driver.AllReply {
	t.Helper()
	reply, err := t.Features.AllAcquirer.AcquireAll(t.Context(), reqs)
	t.must("AcquireAll", reqs[0].Name, err)
	return reply
}

// acquiredAll makes one attempt that must be granted, and returns the leases.
func (t *T) acquiredAll(reqs []driver.AcquireRequest) []lease {
	t.Helper()
	reply := t.acquireAll(reqs)
	t.need(reply.Outcome == driver.Granted && len(reply.Tokens) == len(reqs), "AcquireAll of %d: %+v, want a grant", len(reqs), reply)
	leases := make([]lease, len(reqs))
	for i, req := range reqs {
		leases[i] = lease{AcquireRequest: req, token: reply.Tokens[i]}
	}
	return leases
}

// notAllTaken makes one attempt whose outcome must be want, because of request refused, and which
// must leave no lease of the requests.
func (t *T) notAllTaken(reqs []driver.AcquireRequest, want driver.Outcome, refused int) driver.Blocker {
	t.Helper()
	reply := t.acquireAll(reqs)
	t.need(reply.Outcome == want && reply.Refused == refused && len(reply.Tokens) == 0, "AcquireAll: %+v, want outcome %d because of request %d", reply, want, refused)
	t.nothingOf(reqs)
	return reply.Blocker
}

// nothingOf fails the run if there is a lease of one of the requests.
func (t *T) nothingOf(reqs []driver.AcquireRequest) {
	t.Helper()
	for _, req := range reqs {
		_, ok := t.holding(lease{AcquireRequest: req})
		t.need(!ok, "AcquireAll took %q, and not all", req.Name)
	}
}

func acquireAllTakesAll(t *T) {
	reqs := askTagged(t.units(40), "c", "a", "b", "d")
	reqs[1].TTL = t.units(400)
	reqs[2].Holder = t.wholeHolder()
	unlike := t.take("{tag}first", t.units(8)).token // makes the tokens of the names differ
	for i := range reqs {
		reqs[i].MinToken = unlike + uint64([]int{300, 100, 400, 200}[i])*1_000_000
	}
	if canCount(t) {
		reqs[0].Mode = lockinfo.Permits(2, 3)
	}
	if canShare(t) {
		reqs[3].Mode = lockinfo.Shared
	}
	for i, l := range t.acquiredAll(reqs) {
		lock := t.inspect(l.Name)
		t.need(len(lock.Holders) == 1 && lock.Mode == reqs[i].Mode && lock.LastToken == l.token, "lock = %+v, want the lease of %+v", lock, reqs[i])
		h := lock.Holders[0]
		t.want(h.LeaseID == l.LeaseID && h.Token == l.token && h.Mode == reqs[i].Mode && sameHolder(h.Holder, l.Holder),
			"holding = %+v, want the lease of %+v with token %d", h, reqs[i], l.token)
		t.want(h.ExpiresIn >= l.TTL*3/4 && h.ExpiresIn <= l.TTL+t.slack(), "%s left, want %s", h.ExpiresIn, l.TTL)
		t.mustExtend(l, t.units(800))
		t.mustRelease(l)
		t.free(l.Name)
	}
}

func acquireAllAllOrNone(t *T) {
	l := t.grant(t.askWhole("{tag}c", t.units(8)))
	t.take("{tag}d", t.units(40))
	reqs := askTagged(t.units(40), "a", "b", "c", "d", "e")
	t.lasts("AcquireAll", t.units(8), l, func() time.Duration {
		blocker := t.notAllTaken(reqs, driver.Held, 2)
		t.want(sameHolder(blocker.Holder, l.Holder) && blocker.Place == 0, "in the way: %+v, want %+v, no place", blocker, l.Holder)
		return blocker.ExpiresIn
	})
	t.live(l)
	t.mustRelease(l)
	t.notAllTaken(reqs, driver.Held, 3)
	t.acquiredAll(askTagged(t.units(40), "a", "b", "c"))
}

// acquireAllContention sends 8 attempts at once, half of them with the names in reverse order.
func acquireAllContention(t *T) {
	for round := range 4 {
		names := []string{fmt.Sprint(round, "a"), fmt.Sprint(round, "b")}
		replies := make([]driver.AllReply, 8)
		reqs := make([][]driver.AcquireRequest, len(replies))
		atOnce(len(replies), func(i int) {
			reqs[i] = askTagged(t.units(40), names[i%2], names[1-i%2])
			var err error
			replies[i], err = t.Features.AllAcquirer.AcquireAll(t.Context(), reqs[i])
			t.want(err == nil, "AcquireAll: %v", err)
		})
		granted := 0
		for i, reply := range replies {
			if reply.Outcome != driver.Granted {
				t.nothingOf(reqs[i])
				continue
			}
			granted++
			for _, req := range reqs[i] {
				t.live(lease{AcquireRequest: req})
			}
		}
		t.need(granted == 1, "%d of %d attempts at once were granted, want 1", granted, len(replies))
	}
}

func acquireAllDoesNotBarge(t *T) {
	t.take("{tag}b", t.units(1))
	waiter := t.queue("{tag}b", 1)
	if canShare(t) {
		reader := t.grant(askShared("{tag}d", t.units(400)))
		t.queue("{tag}d", 1)
		reqs := askTagged(t.units(40), "c", "d")
		reqs[1].Mode = lockinfo.Shared
		t.notAllTaken(reqs, driver.Held, 1)
		t.live(reader)
	}
	time.Sleep(t.units(2))
	t.notAllTaken(askTagged(t.units(40), "a", "b"), driver.Held, 1)
	t.grant(waiter)
}

func acquireAllRepeat(t *T) {
	reqs := askTagged(t.units(8), "a", "b")
	leases := t.acquiredAll(reqs)
	t.mustExtend(leases[1], t.units(400))
	for i := range reqs {
		reqs[i].TTL = t.units(40)
	}
	for i, again := range t.acquiredAll(reqs) {
		t.want(again.token == leases[i].token, "token %d of the repeat = %d, want %d", i, again.token, leases[i].token)
	}
	for i, least := range []int{30, 300} {
		t.atLeast(fmt.Sprintf("lease %d after a repeat", i), t.live(leases[i]), t.units(least))
	}
}

func acquireAllCancelled(t *T) {
	reqs := askTagged(t.units(40), "a", "b", "c")
	t.mustCancel(reqs[1])
	t.notAllTaken(reqs, driver.Cancelled, 1)
	t.acquiredAll(askTagged(t.units(40), "a", "b", "c"))
}

func acquireAllTokensGrow(t *T) {
	ahead := t.takeAhead("{tag}a", t.units(40))
	t.mustRelease(ahead)
	reqs := askTagged(t.units(40), "a", "b")
	reqs[1].MinToken = ahead.token
	leases := t.acquiredAll(reqs)
	t.above(ahead.token, leases[0])
	t.above(ahead.token, leases[1])
	for _, l := range leases {
		t.mustRelease(l)
		t.above(l.token, t.take(l.Name, t.units(8)))
	}
}

func acquireAllError(t *T) {
	invalid := askTagged(t.units(40), "a", "b")
	invalid[1].MinToken = driver.MaxToken
	t.acquireAllFails("AcquireAll with a MinToken too far ahead", invalid, driver.ErrInvalid)
	if !canCount(t) {
		return
	}
	t.take("{tag}c", t.units(40))
	mismatched := append(askTagged(t.units(40), "a"), askPermits("{tag}c", 1, 2, t.units(40)))
	t.acquireAllFails("AcquireAll with a semaphore request to an exclusive lock", mismatched, driver.ErrKindMismatch)
}

// acquireAllFails makes one attempt whose error must wrap want, and which must leave no lease.
func (t *T) acquireAllFails(what string, reqs []driver.AcquireRequest, want error) {
	t.Helper()
	_, err := t.Features.AllAcquirer.AcquireAll(t.Context(), reqs)
	t.fails(what, err, want)
	t.nothingOf(reqs)
}

func acquireAllTakesMaxBatch(t *T) {
	var names []string
	for i := range driver.MaxBatch {
		names = append(names, fmt.Sprint(i))
	}
	reqs := askTagged(t.units(400), names...)
	for _, l := range t.acquiredAll(reqs) {
		h, _ := t.holding(l)
		t.need(h.Token == l.token, "token of %q = %d, want %d as AcquireAll said", l.Name, h.Token, l.token)
	}
}

func acquireAllAnyNames(t *T) {
	reqs := []driver.AcquireRequest{ask("orders/1", t.units(40)), ask("invoices", t.units(40)), ask("{x}y", t.units(40))}
	reply, err := t.Features.AllAcquirer.AcquireAll(t.Context(), reqs)
	switch {
	case errors.Is(err, driver.ErrUnsupported):
		t.nothingOf(reqs)
	case err != nil || reply.Outcome != driver.Granted:
		t.Errorf("AcquireAll of free names: %+v, error %v", reply, err)
	default:
		for _, req := range reqs {
			t.refused(req.Name)
		}
	}
}
