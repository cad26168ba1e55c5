package enginetest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// want fails the run with a message unless ok.
func (t *T) want(ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// need ends the run with a message unless ok.
func (t *T) need(ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// must ends the run unless a call succeeded. name is "" for a call without a name.
func (t *T) must(call, name string, err error) {
	t.Helper()
	t.need(err == nil, "%s(%q): %v", call, name, err)
}

// mayBeLost is must, but allows ErrLost.
func (t *T) mayBeLost(call, name string, err error) {
	t.Helper()
	if !errors.Is(err, driver.ErrLost) {
		t.must(call, name, err)
	}
}

// fails fails the run unless err wraps want.
func (t *T) fails(what string, err, want error) {
	t.Helper()
	t.want(errors.Is(err, want), "%s: error %v, want one that wraps %q", what, err, want)
}

// lost fails the run unless err is ErrLost.
func (t *T) lost(what string, err error) {
	t.Helper()
	t.fails(what, err, driver.ErrLost)
}

// acquireFails makes one attempt, whose error must wrap want.
func (t *T) acquireFails(what string, req driver.AcquireRequest, want error) {
	t.Helper()
	_, err := t.Engine.Acquire(t.Context(), req)
	t.fails(what, err, want)
}

// atLeast fails the run if left is less than least.
func (t *T) atLeast(what string, left, least time.Duration) {
	t.Helper()
	t.want(left >= least, "%s lasts for another %s, want %s at least", what, left, least)
}

// atMost fails the run if left is more than most and the slack.
func (t *T) atMost(what string, left, most time.Duration) {
	t.Helper()
	t.want(left <= most+t.slack(), "%s lasts for another %s, want %s at most", what, left, most)
}

// grantedAgain makes one attempt that must be granted with the token of l.
func (t *T) grantedAgain(req driver.AcquireRequest, l lease) {
	t.Helper()
	again := t.grant(req)
	t.want(again.token == l.token, "token of a repeat = %d, want %d", again.token, l.token)
}

// counts fails the run unless name has this many leases, and its last token is l's. It returns
// the state of the name.
func (t *T) counts(name string, leases int, l lease) lockinfo.LockState {
	t.Helper()
	lock := t.inspect(name)
	t.need(len(lock.Holders) == leases && lock.LastToken == l.token,
		"%q has %d leases and the last token %d, want %d and %d", name, len(lock.Holders), lock.LastToken, leases, l.token)
	return lock
}

// sameHolder fails the run unless the holders are equal.
func (t *T) sameHolder(what string, got, want lockinfo.Holder) {
	t.Helper()
	t.want(sameHolder(got, want), "%s: holder %+v, want %+v", what, got, want)
}
