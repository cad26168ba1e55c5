package rediscore

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestHints checks that a name is remembered for its time, and that memory does not grow.
func TestHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHints(contendedFor)
		if h.has("a") {
			t.Error("a name is known from the beginning")
		}
		h.note("a")
		time.Sleep(contendedFor - tick)
		if !h.has("a") {
			t.Error("a name is forgotten too early")
		}
		h.note("a")
		time.Sleep(contendedFor - tick)
		if !h.has("a") {
			t.Error("a name that was seen again is forgotten")
		}
		time.Sleep(tick)
		if h.has("a") {
			t.Error("a name is remembered for longer than its time")
		}
		for _, name := range numbered("n", 0, 10_000) {
			h.note(name)
		}
		for _, name := range numbered("m", 0, 10_000) {
			if h.has(name) {
				t.Errorf("%q is taken for another", name)
			}
		}
	})
}
