package holdfast_test

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

// TestClientsHolder: Reason and Labels belong to acquisitions, so that those of
// Options.Holder are not told to anybody; and a holder that cannot be told is
// refused by each acquire, whether or not it gives a reason.
func TestClientsHolder(t *testing.T) {
	labels := map[string]string{"build": "17"}
	engine := memlock.New()
	good := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: "web-3", Reason: "\n", Labels: labels}})
	bad := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: "web\n3"}})
	for _, opts := range []*holdfast.AcquireOptions{nil, {Labels: map[string]string{}}, {Reason: "why"}, {Labels: labels}} {
		l := mustAcquire(t, good, "a", opts)
		want := holdfast.Holder{Host: "web-3"}
		if opts != nil {
			want.Reason, want.Labels = opts.Reason, opts.Labels
		}
		lock, err := good.Inspect(t.Context(), "a")
		if err != nil || len(lock.Holders) != 1 ||
			fmt.Sprintf("%+v", lock.Holders[0].Holder) != fmt.Sprintf("%+v", want) || fmt.Sprintf("%+v", l.Holder()) != fmt.Sprintf("%+v", want) {
			t.Errorf("%+v: the lease has %+v, the store %+v, %v; want %+v", opts, l.Holder(), lock.Holders, err, want)
		}
		l.Release(t.Context())
		_, err = bad.TryAcquire(t.Context(), "a", opts)
		wantErr(t, err, holdfast.ErrInvalid)
	}
}

// The caller may go on using the labels that he gave: those of a request that
// waits, and of a lease, stay as they were.
func TestLabelsAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		release := foreign(t, engine, "a", time.Hour)
		labels := map[string]string{"build": "17"}
		want := maps.Clone(labels)
		done := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{Labels: labels})
		labels["build"], labels["more"] = "18", "19"
		release()
		l := granted(t, done).lease
		if got := l.Holder().Labels; !maps.Equal(got, want) {
			t.Errorf("the lease's labels are %v, want %v", got, want)
		}
		lock, err := engine.Inspect(t.Context(), "a")
		if err != nil || len(lock.Holders) != 1 || !maps.Equal(lock.Holders[0].Holder.Labels, want) {
			t.Errorf("the store has %+v, %v; want the labels %v", lock.Holders, err, want)
		}
		l.Release(t.Context())
	})
}
