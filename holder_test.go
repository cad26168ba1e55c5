package holdfast_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

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
