package holdfast_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast"
)

type invoice struct {
	ID     int               `json:"id"`
	Lines  []string          `json:"lines"`
	Labels map[string]string `json:"labels"`
	Next   *invoice          `json:"next,omitempty"`
	hidden int
}

// checkJSON runs work that returns v, then replays it: both callers get want.
func checkJSON[T any](t *testing.T, v, want T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		runs := 0
		for _, replayed := range []bool{false, true} {
			got, r, err := holdfast.OnceJSON(t.Context(), c, "k", nil, func(context.Context, *holdfast.Lease) (T, error) {
				runs++
				return v, nil
			})
			if err != nil || !reflect.DeepEqual(got, want) || r.Replayed != replayed || r.Token == 0 || runs != 1 {
				t.Errorf("%T: %#v, %+v, %v after %d runs; want %#v, replayed %t", v, got, r, err, runs, want, replayed)
			}
		}
	})
}

func TestOnceJSONValues(t *testing.T) {
	one := invoice{ID: 1, Lines: []string{"a", "<&>"}, Labels: map[string]string{"k": "v"}, Next: &invoice{ID: 2}, hidden: 7}
	kept := one
	kept.hidden = 0 // the first caller sees what the others will see
	checkJSON(t, one, kept)
	checkJSON(t, &one, &kept)
	checkJSON[*invoice](t, nil, nil)
	checkJSON[error](t, nil, nil)
	checkJSON(t, invoice{}, invoice{})
	checkJSON(t, struct{}{}, struct{}{})
	checkJSON[map[string]int](t, nil, nil)
	checkJSON(t, []byte{0, 255, '\n'}, []byte{0, 255, '\n'})
	checkJSON(t, "line\nbreak", "line\nbreak")
	checkJSON[uint64](t, math.MaxUint64, math.MaxUint64)
	checkJSON[any](t, 1, 1.0)
}

func TestOnceJSONOfAnotherType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		once(t, c, nil, returns(`{"id":1,"lines":["a",2]}`))
		v, r, err := holdfast.OnceJSON(t.Context(), c, "k", nil, func(context.Context, *holdfast.Lease) (invoice, error) {
			t.Error("the work ran")
			return invoice{}, nil
		})
		wantErr(t, err, holdfast.ErrKindMismatch)
		if v.ID != 0 || v.Lines != nil || !r.Replayed || len(r.Value) == 0 {
			t.Errorf("%+v, %+v: want no value, and the result as it is", v, r)
		}
		if s := wantState(t, c, holdfast.OnceDone); s.State != holdfast.OnceDone {
			t.Error("the result is gone")
		}
	})
}

func TestOnceJSONErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		errWork := errors.New("work failed")
		v, r, err := holdfast.OnceJSON(t.Context(), c, "k", nil, func(context.Context, *holdfast.Lease) (int, error) { return 7, errWork })
		if err != errWork || v != 0 || r.Value != nil {
			t.Errorf("%v, %+v, %v; want the work's error as it is", v, r, err)
		}
		_, _, err = holdfast.OnceJSON(t.Context(), c, "k", nil, func(context.Context, *holdfast.Lease) (any, error) { return func() {}, nil })
		if err == nil || err.Error() != `holdfast: once "k": json: unsupported type: func()` {
			t.Errorf("error = %v", err)
		}
		wantFree(t, engine, c)
	})
}
