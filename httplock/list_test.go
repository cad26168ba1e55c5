package httplock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A long store has 10,000 locks. It lists the last one when the test allows it.
type long struct {
	*mem.Engine
	last chan struct{}
	seen int // locks that List has produced
	err  error
}

func (l *long) List(ctx context.Context, _ string) iter.Seq2[lockinfo.LockState, error] {
	return func(yield func(lockinfo.LockState, error) bool) {
		for l.seen = range 10_000 {
			if l.seen == 9_999 {
				select {
				case <-l.last:
				case <-ctx.Done():
				}
			}
			if !yield(lockinfo.LockState{Name: fmt.Sprint("job ", l.seen), QueueLength: 1}, nil) || ctx.Err() != nil {
				return
			}
		}
		if l.err != nil {
			yield(lockinfo.LockState{}, l.err)
		}
	}
}

// TestListStreams checks that a reader receives the first of many locks before the store has listed
// the last one, and that the store stops when the reader stops.
func TestListStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &long{Engine: mem.New(nil), last: make(chan struct{})}
		_, e := served(t, store)
		n := 0
		for l, err := range e.List(t.Context(), "") {
			if err != nil || l.Name != fmt.Sprint("job ", n) {
				t.Fatalf("%v, %v: want job %d", l, err, n)
			}
			if n == 1 {
				close(store.last)
			}
			n++
		}
		if n != 10_000 {
			t.Errorf("%d locks", n)
		}
		store.last = make(chan struct{})
		for range e.List(t.Context(), "") {
			break
		}
		synctest.Wait()
		if store.seen == 9_999 {
			t.Error("the store goes on with what nobody reads")
		}
		close(store.last)
	})
}

// A slow store lists one lock a second.
type slow struct{ *mem.Engine }

func (slow) List(context.Context, string) iter.Seq2[lockinfo.LockState, error] {
	return func(yield func(lockinfo.LockState, error) bool) {
		for i := range 20 {
			time.Sleep(time.Second)
			if !yield(lockinfo.LockState{Name: fmt.Sprint("job ", i), QueueLength: 1}, nil) {
				return
			}
		}
	}
}

// TestListGoesOn checks that a reader receives each lock as soon as the store lists it.
func TestListGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, e := served(t, slow{mem.New(nil)})
		began, n := time.Now(), 0
		for l, err := range e.List(t.Context(), "") {
			n++
			if took := time.Since(began); err != nil || took > time.Duration(n)*time.Second {
				t.Errorf("%v after %s, %v", l, took, err)
			}
		}
		if n != 20 {
			t.Errorf("%d locks", n)
		}
	})
}

// TestSlowReader checks that a reader may take minutes for one page of a list.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &long{Engine: mem.New(nil), last: make(chan struct{})}
		close(store.last)
		_, e := served(t, store)
		n := 0
		for _, err := range e.List(t.Context(), "") {
			if err != nil {
				t.Fatalf("after %d: %v", n, err)
			}
			if n++; n%5000 == 1 {
				time.Sleep(4 * time.Minute)
			}
		}
	})
}

// TestListsAreWhole checks that a list that was cut off, or that the store could not complete, ends
// with an error.
func TestListsAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &long{Engine: mem.New(nil), last: make(chan struct{}), err: fmt.Errorf("a part is away: %w", driver.ErrUnavailable)}
		close(store.last)
		day := &badDay{}
		_, e := served(t, store, day.around)
		ends := func() (n int, last error) {
			for _, err := range e.List(t.Context(), "") {
				n, last = n+1, err
			}
			return n, last
		}
		if n, err := ends(); n != 10_001 || !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("%d, %v", n, err)
		}
		store.err = nil
		day.reply = func(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			_, _ = io.WriteString(w, answer.Body.String()[:answer.Body.Len()/2])
		}
		if n, err := ends(); n < 1000 || err == nil || driver.Definite(err) {
			t.Errorf("cut off: %d, %v", n, err)
		}
		day.reply = func(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()-len("{\"end\":true}\n")])
		}
		if n, err := ends(); n != 10_001 || err == nil || driver.Definite(err) {
			t.Errorf("cut off before the end: %d, %v", n, err)
		}
	})
}

// TestListsWait checks that an engine may have few lists in progress at a server, and that another
// list fails after a while.
func TestListsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		_, e := served(t, &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
			<-end
			return send()
		}})
		list := func() (last error) {
			for _, err := range e.List(t.Context(), "") {
				last = err
			}
			return last
		}
		var lists sync.WaitGroup
		for range 16 {
			lists.Go(func() {
				if err := list(); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		if err := list(); !errors.Is(err, driver.ErrUnavailable) || time.Since(began) > time.Minute {
			t.Errorf("one list too many: %v after %s", err, time.Since(began))
		}
		close(end)
		lists.Wait()
		if err := list(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
