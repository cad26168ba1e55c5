package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// Each way of losing a lease has a name.
func TestLossCause(t *testing.T) {
	ways := map[string]struct {
		opts holdfast.AcquireOptions
		lose func(t *testing.T, c *holdfast.Client, engine *faulty)
	}{
		"deadline": {lose: func(_ *testing.T, _ *holdfast.Client, engine *faulty) { engine.set(fail(errLink, "extend"), nil) }},
		"max-hold": {opts: holdfast.AcquireOptions{MaxHold: time.Minute}},
		"stalled":  {opts: holdfast.AcquireOptions{Progress: time.Minute}},
		"broken": {lose: func(t *testing.T, c *holdfast.Client, _ *faulty) {
			if _, err := c.Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada"}); err != nil {
				t.Fatal(err)
			}
		}},
		"taken": {lose: func(t *testing.T, _ *holdfast.Client, engine *faulty) { takeAway(t, engine.Engine, "a") }},
		"overtaken": {lose: func(t *testing.T, c *holdfast.Client, engine *faulty) {
			takeAway(t, engine.Engine, "a")
			mustAcquire(t, c, "a", nil)
		}},
	}
	for want, way := range ways {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				l := mustAcquire(t, c, "a", &way.opts)
				if way.lose != nil {
					way.lose(t, c, engine)
				}
				<-l.Context().Done()
				if err := context.Cause(l.Context()); holdfast.LossCause(err) != want {
					t.Errorf("%v is %q, want %q", err, holdfast.LossCause(err), want)
				}
			})
		})
	}
	if got := holdfast.LossCause(holdfast.ErrLeft); got != "" {
		t.Errorf("what is not a loss is %q", got)
	}
	if got := holdfast.LossCause(errors.Join(holdfast.ErrLost, holdfast.ErrLeft)); got != "left" {
		t.Errorf("a lease that was left is %q", got)
	}
	if got := holdfast.LossCause(nil); got != "" {
		t.Errorf("nil is %q", got)
	}
}
