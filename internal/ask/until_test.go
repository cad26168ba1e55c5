package ask_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

const timeout = 6 * time.Second

// errHang makes a request hang until its context ends.
var errHang = errors.New("hang")

// A script is a store that replies to each request with the next error. The last error is for all
// later requests.
type script struct {
	errs []error
	sent int
	last time.Time
}

func (s *script) send(ctx context.Context) error {
	err := s.errs[min(s.sent, len(s.errs)-1)]
	s.sent++
	s.last = time.Now()
	if err == errHang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// TestUntil checks for how long a request is repeated, and how its final error is classified, for
// several sequences of errors.
func TestUntil(t *testing.T) {
	down := fmt.Errorf("%w: refused", driver.ErrUnavailable)
	denied := fmt.Errorf("%w: +eval is missing", driver.ErrPermission)
	unknown, unavailable := driver.ErrOutcomeUnknown, driver.ErrUnavailable
	tests := map[string]struct {
		errs      []error
		end       string // of the caller's context; see ending
		sent      int    // 0: more than a few
		took      time.Duration
		effective []error // empty: success
		harmless  []error
	}{
		"answered":                   {errs: []error{nil}, sent: 1},
		"answered at last":           {errs: []error{down, errLink, nil}, sent: 3, took: -1},
		"answered after a silence":   {errs: []error{errHang, nil}, sent: 2, took: -1},
		"permanent":                  {errs: []error{denied}, sent: 1, effective: []error{driver.ErrPermission}, harmless: []error{driver.ErrPermission}},
		"lost":                       {errs: []error{driver.ErrLost}, sent: 1, effective: []error{driver.ErrLost}, harmless: []error{driver.ErrLost}},
		"lost after doubt":           {errs: []error{errLink, driver.ErrLost}, sent: 2, took: -1, effective: []error{driver.ErrLost}, harmless: []error{driver.ErrLost}},
		"permanent after doubt":      {errs: []error{errLink, denied}, sent: 2, took: -1, effective: []error{unknown, errLink}, harmless: []error{driver.ErrPermission}},
		"refused throughout":         {errs: []error{down}, took: timeout, effective: []error{unavailable}, harmless: []error{unavailable}},
		"refused after doubt":        {errs: []error{errLink, down}, took: timeout, effective: []error{unknown, errLink}, harmless: []error{unavailable}},
		"lost on the way throughout": {errs: []error{errLink}, took: timeout, effective: []error{unknown, errLink}, harmless: []error{unavailable, errLink}},
		"silent throughout":          {errs: []error{errHang}, sent: ask.Tries, took: timeout, effective: []error{unknown, ask.ErrNoAnswer}, harmless: []error{unavailable, ask.ErrNoAnswer}},
		"refused, and the caller ends": {
			errs: []error{down}, end: "cause", took: time.Second,
			effective: []error{context.Canceled, errWish}, harmless: []error{context.Canceled, errWish},
		},
		"silent, and the caller ends": {
			errs: []error{errHang}, end: "cancel", sent: 1, took: time.Second,
			effective: []error{unknown, context.Canceled}, harmless: []error{context.Canceled},
		},
		"silent, and the caller's time is over": {
			errs: []error{errHang}, end: "deadline", sent: 1, took: time.Second,
			effective: []error{unknown, context.DeadlineExceeded}, harmless: []error{context.DeadlineExceeded},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := ending(t, test.end)
				defer stop()
				s := &script{errs: test.errs}
				began := time.Now()
				f := ask.Until(ctx, timeout, s.send)
				took := time.Since(began)
				switch {
				case test.sent != 0 && s.sent != test.sent, test.sent == 0 && s.sent < 5:
					t.Errorf("%d requests, want %d", s.sent, test.sent)
				case test.took >= 0 && took != test.took, took > timeout:
					t.Errorf("it took %s, want %s", took, test.took)
				}
				wraps(t, "Effective", f.Effective(), test.effective...)
				wraps(t, "Harmless", f.Harmless(), test.harmless...)
				if lost := errors.Is(test.errs[len(test.errs)-1], driver.ErrLost); f.Lost() != lost {
					t.Errorf("lost: %t, want %t", f.Lost(), lost)
				}
			})
		})
	}
}

// TestUntilUnderAnotherLease checks that the loss of a lease that has ended the caller's context is
// not taken for the reply to the request.
func TestUntilUnderAnotherLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(driver.ErrLost) })
		f := ask.Until(ctx, timeout, (&script{errs: []error{errLink}}).send)
		wraps(t, "Effective", f.Effective(), driver.ErrOutcomeUnknown, errLink)
		if f.Lost() {
			t.Error("a request without a reply counts as lost")
		}
	})
}

// TestUntilSendsNothing checks that no request is sent if the context has ended.
func TestUntilSendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &script{errs: []error{nil}}
	f := ask.Until(ctx, timeout, s.send)
	wraps(t, "Effective", f.Effective(), context.Canceled)
	wraps(t, "Harmless", f.Harmless(), context.Canceled)
	if s.sent != 0 {
		t.Errorf("%d requests were sent", s.sent)
	}
}

// TestUntilEnd checks that a limit of ours ends the repeats, and is not reported as the end of the
// caller's context.
func TestUntilEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := ask.LimitUntil(t.Context(), began.Add(10*time.Second))
		defer cancel()
		s := &script{errs: []error{errHang}}
		f := ask.UntilEnd(ctx, time.Second, s.send)
		if took := time.Since(began); took != 10*time.Second || s.sent < 5 {
			t.Errorf("it took %s and %d requests", took, s.sent)
		}
		wraps(t, "Effective", f.Effective(), driver.ErrOutcomeUnknown, ask.ErrNoAnswer)
		wraps(t, "Harmless", f.Harmless(), driver.ErrUnavailable, ask.ErrNoAnswer)
	})
}
