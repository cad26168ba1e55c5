package leasedoor_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestOnceInTwoRequests checks that one request begins work and another completes it, at any
// server. Every other caller receives the result, and so does the library.
func TestOnceInTwoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		const path = "/v1/once/mail%2F42"
		asked := wire.OnceRequest{Fingerprint: "sum 7", TTLMS: 10_000}
		var run, again wire.Lease
		a.do(http.StatusCreated, "POST", path, key, asked, &run)
		b.do(http.StatusCreated, "POST", path, key, asked, &again)
		if run.Repeated || !again.Repeated || run.LeaseID != again.LeaseID || run.Token != again.Token || run.Name != "mail/42" {
			t.Errorf("the repeat is answered %+v, the first %+v", again, run)
		}
		p := b.refused(http.StatusConflict, "in-progress", "POST", path, otherKey, asked)
		if len(p.Holders) != 1 || p.Holders[0].User != "anonymous" {
			t.Errorf("in the way is %+v", p.Holders)
		}
		b.refused(http.StatusUnprocessableEntity, "key-reused", "POST", path, otherKey, wire.OnceRequest{Fingerprint: "sum 8"})
		var state wire.OnceState
		a.do(http.StatusOK, "GET", path, "", nil, &state)
		if state.State != "in_progress" || state.Holder == nil {
			t.Errorf("the state is %+v", state)
		}
		waiting := make(chan wire.OnceDone, 1)
		go func() {
			var d wire.OnceDone
			b.do(http.StatusOK, "POST", path, otherKey, wire.OnceRequest{WaitMS: 50_000}, &d)
			waiting <- d
		}()
		synctest.Wait()

		result := wire.OnceResult{LeaseID: run.LeaseID, Result: json.RawMessage(`{"sent":true}`), RetentionMS: 3_600_000}
		b.do(http.StatusNoContent, "PUT", path+"/result", "", result, nil)
		a.do(http.StatusNoContent, "PUT", path+"/result", "", result, nil) // the first reply was lost
		if d := <-waiting; string(d.Result) != `{"sent":true}` || d.FencingToken != run.FencingToken {
			t.Errorf("the waiter got %+v", d)
		}
		for _, s := range []*site{a, b} {
			var d wire.OnceDone
			s.do(http.StatusOK, "POST", path, key, asked, &d)
			if string(d.Result) != `{"sent":true}` || d.FencingToken != run.FencingToken || d.Key != "mail/42" {
				t.Errorf("done: %+v", d)
			}
			s.refused(http.StatusUnprocessableEntity, "key-reused", "POST", path, otherKey, wire.OnceRequest{Fingerprint: "sum 8"})
		}
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r, err := c.Once(t.Context(), "mail/42", &holdfast.OnceOptions{Fingerprint: "sum 7"}, notDone)
		if err != nil || !r.Replayed || r.Token != run.FencingToken || string(r.Value) != `{"sent":true}` {
			t.Errorf("the library has %+v, %v", r, err)
		}
		a.do(http.StatusOK, "GET", path, "", nil, &state)
		if state.State != "done" || string(state.Result) != `{"sent":true}` || state.ExpiresInMS == nil || *state.ExpiresInMS > 3_600_000 || *state.ExpiresInMS < 3_599_000 {
			t.Errorf("the state is %+v", state)
		}
		var list wire.Onces
		a.do(http.StatusOK, "GET", "/v1/once?prefix=mail", "", nil, &list)
		if len(list.Once) != 1 || list.Once[0].Key != "mail/42" || list.Once[0].State != "done" {
			t.Errorf("the list is %+v", list)
		}
		a.do(http.StatusNoContent, "DELETE", path, "", nil, nil)
		a.refused(http.StatusNotFound, "no-result", "DELETE", path, "", nil)
		a.refused(http.StatusNotFound, "no-result", "GET", path, "", nil)
	})
}

// TestOnceWithoutResult checks that the next caller gets work that failed or was not renewed.
func TestOnceWithoutResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		var run wire.Lease
		s.do(http.StatusCreated, "POST", "/v1/once/k", key, wire.OnceRequest{}, &run)
		s.do(http.StatusNoContent, "POST", "/v1/once/k/fail", "", wire.OnceFailure{LeaseID: run.LeaseID}, nil)
		result := wire.OnceResult{LeaseID: run.LeaseID, Result: json.RawMessage("1")}
		s.refused(http.StatusGone, "lost", "PUT", "/v1/once/k/result", "", result)
		s.refused(http.StatusGone, "lost", "POST", "/v1/once/k/fail", "", wire.OnceFailure{LeaseID: run.LeaseID})
		s.refused(http.StatusGone, "released", "POST", "/v1/once/k", key, wire.OnceRequest{})
		s.do(http.StatusCreated, "POST", "/v1/once/k", otherKey, wire.OnceRequest{TTLMS: 10_000}, &run)
		time.Sleep(9 * time.Second)
		renew := ref(run)
		renew.TTLMS = 10_000
		s.do(http.StatusOK, "POST", "/v1/leases/renew", "", renew, nil)
		time.Sleep(10 * time.Second)
		result.LeaseID = run.LeaseID
		s.refused(http.StatusGone, "lost", "PUT", "/v1/once/k/result", "", result)
		third := "third-0123456789"
		s.do(http.StatusCreated, "POST", "/v1/once/k", third, wire.OnceRequest{}, &run)
		s.do(http.StatusNoContent, "PUT", "/v1/once/k/result", "", wire.OnceResult{LeaseID: run.LeaseID}, nil)
		s.refused(http.StatusGone, "lost", "PUT", "/v1/once/k/result", "", result) // the result of an earlier run
	})
}

// TestOnceResults checks that results of every kind can be read: JSON, text, bytes and nothing.
func TestOnceResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := open(t, engine)
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for value, want := range map[string]string{
			`{"a":1}`: `{"a":1}`, "5": "5", "sent\n": `"sent\n"`, "": `""`, "\xff": "", `"x"`: `"x"`, "\"\xff\"": "",
		} {
			_, err := c.Once(t.Context(), "k", nil, work(value))
			if err != nil {
				t.Fatal(err)
			}
			var d wire.OnceDone
			s.do(http.StatusOK, "POST", "/v1/once/k", key, wire.OnceRequest{}, &d)
			if string(d.Result) != want || want == "" && string(d.ResultBytes) != value {
				t.Errorf("%q is shown as %s, %q, want %s", value, d.Result, d.ResultBytes, want)
			}
			s.do(http.StatusNoContent, "DELETE", "/v1/once/k", "", nil, nil)
		}
		var run wire.Lease
		s.do(http.StatusCreated, "POST", "/v1/once/k", key, wire.OnceRequest{}, &run)
		s.do(http.StatusNoContent, "PUT", "/v1/once/k/result", "", wire.OnceResult{LeaseID: run.LeaseID, ResultBytes: []byte("\xff\x00")}, nil)
		r, err := c.Once(t.Context(), "k", nil, notDone)
		if err != nil || string(r.Value) != "\xff\x00" {
			t.Errorf("the library has %q, %v", r.Value, err)
		}
	})
}

// TestOnceRefusedLeavesNoPlace checks that a request that is refused because of its fingerprint
// leaves the queue. Otherwise it would be granted the lock, and requests with the right fingerprint
// would be refused.
func TestOnceRefusedLeavesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		const path = "/v1/once/mail%2F42"
		right, wrong := wire.OnceRequest{Fingerprint: "sum 7"}, wire.OnceRequest{Fingerprint: "sum 8", WaitMS: 50_000}
		var run wire.Lease
		a.do(http.StatusCreated, "POST", path, key, right, &run)
		b.refused(http.StatusUnprocessableEntity, "key-reused", "POST", path, otherKey, wrong)
		a.do(http.StatusNoContent, "POST", path+"/fail", "", wire.OnceFailure{LeaseID: run.LeaseID}, nil)
		b.do(http.StatusCreated, "POST", path, "third-0123456789", right, nil)
	})
}
