package holdfast_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// onceList returns what OnceList yields, by key.
func onceList(t *testing.T, c *holdfast.Client, prefix string) map[string]holdfast.OnceEntry {
	t.Helper()
	all := map[string]holdfast.OnceEntry{}
	for e, err := range c.OnceList(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := all[e.Key]; ok {
			t.Errorf("%s comes twice", e.Key)
		}
		all[e.Key] = e
	}
	return all
}

// TestOnceList: what is done or in progress, with the length of a result and not the
// result; a lock that is nobody's do-once work is not among it.
func TestOnceList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), &holdfast.Options{Holder: holdfast.Holder{Host: "web-3"}})
		work := func(key, result string, during func()) uint64 {
			opts := &holdfast.OnceOptions{Retention: time.Hour, Fingerprint: strings.Repeat("<", 256)} // the longest header
			r, err := c.Once(t.Context(), key, opts, func(context.Context, *holdfast.Lease) ([]byte, error) {
				during()
				return []byte(result), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return r.Token
		}
		defer mustAcquire(t, c, "x/lock", nil).Release(t.Context())
		long := strings.Repeat("result\n", 1000)
		token := work("x/done", long, func() {})
		work("y/done", "", func() {})
		work("x/now", "", func() {
			time.Sleep(time.Minute)
			all := onceList(t, c, "x/")
			if done := all["x/done"]; done.State != holdfast.OnceDone || done.Token != token || done.Length != len(long) || done.ExpiresIn != 59*time.Minute {
				t.Errorf("done: %+v, want the token %d and %d bytes", done, token, len(long))
			}
			now := all["x/now"]
			if now.State != holdfast.OnceInProgress || now.Holder.Host != "web-3" || now.Token != 0 || now.Length != 0 || now.ExpiresIn <= 0 {
				t.Errorf("in progress: %+v", now)
			}
			if len(all) != 2 {
				t.Errorf("%d keys, want 2: %+v", len(all), all)
			}
			for key, want := range all {
				if e, err := c.OnceEntry(t.Context(), key); err != nil || e.State != want.State || e.Length != want.Length || e.Token != want.Token {
					t.Errorf("OnceEntry = %+v, %v; OnceList says %+v", e, err, want)
				}
				lock, err := c.Inspect(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				if e, err := c.OnceEntryOf(t.Context(), lock); err != nil || !reflect.DeepEqual(e, want) {
					t.Errorf("OnceEntryOf = %+v, %v; OnceList says %+v", e, err, want)
				}
			}
		})
		if n := len(onceList(t, c, "")); n != 3 {
			t.Errorf("%d keys, want 3", n)
		}
		time.Sleep(time.Hour)
		if all := onceList(t, c, ""); len(all) != 0 {
			t.Errorf("after the retention: %+v", all)
		}
		if e, err := c.OnceEntry(t.Context(), "x/done"); err != nil || e.State != holdfast.OnceAbsent {
			t.Errorf("after the retention: %+v, %v", e, err)
		}
	})
}

// A completing engine completes the work under its key when it has listed the locks.
type completing struct {
	driver.Forward
	finish func()
}

func (c *completing) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	c.finish()
	return c.Forward.ListRecords(ctx, prefix)
}

// TestOnceListRacesCompletion: work that is done between the two looks is there
// once, and done.
func TestOnceListRacesCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, finish, done := memlock.New(), make(chan struct{}), make(chan struct{})
		worker := newClient(t, store, nil)
		c := newClient(t, &completing{driver.Forward{Engine: store}, func() {
			close(finish)
			<-done
		}}, nil)
		go func() {
			defer close(done)
			_, err := worker.Once(t.Context(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) {
				<-finish
				return []byte("x"), nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if all := onceList(t, c, ""); len(all) != 1 || all["k"].State != holdfast.OnceDone {
			t.Errorf("%+v, want k, done", all)
		}
	})
}

// TestOnceListNeedsEngine: an engine that cannot list says so, and one whose store is
// away does too.
func TestOnceListNeedsEngine(t *testing.T) {
	for _, without := range []driver.Capabilities{{List: true}, {ListRecords: true}, {Records: true}} {
		c := newClient(t, driver.Forward{Engine: memlock.New(), Without: without}, nil)
		for _, err := range c.OnceList(t.Context(), "") {
			if !errors.Is(err, holdfast.ErrUnsupported) {
				t.Errorf("without %+v: %v, want ErrUnsupported", without, err)
			}
		}
	}
	c := newClient(t, driver.Forward{Engine: memlock.New(), Without: driver.Capabilities{ListRecords: true}}, nil)
	if _, err := c.OnceEntry(t.Context(), "k"); !errors.Is(err, holdfast.ErrUnsupported) {
		t.Errorf("OnceEntry: %v, want ErrUnsupported", err)
	}
	if _, err := c.OnceEntryOf(t.Context(), holdfast.Lock{Name: "k"}); !errors.Is(err, holdfast.ErrUnsupported) {
		t.Errorf("OnceEntryOf: %v, want ErrUnsupported", err)
	}
	store := memlock.New()
	c = newClient(t, store, nil)
	store.Close()
	errs := 0
	for _, err := range c.OnceList(t.Context(), "") {
		if errors.Is(err, holdfast.ErrClosed) {
			errs++
		}
	}
	if errs != 1 {
		t.Errorf("%d errors of a closed engine, want 1", errs)
	}
}
