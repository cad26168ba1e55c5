package toyengine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A partial is an engine as far as a step of docs/internals/engines.md, without the methods of the
// later steps.
type partial struct {
	driver.Forward
	step int
}

var errNotYet = errors.New("not written yet")

func (p partial) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if p.step < 3 {
		return driver.AcquireReply{}, errNotYet
	}
	return p.Forward.Acquire(ctx, req)
}

func (p partial) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	if p.step < 3 {
		return lockinfo.LockState{}, errNotYet
	}
	return p.Forward.Inspect(ctx, name)
}

func (p partial) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if p.step < 4 {
		return errNotYet
	}
	return p.Forward.Release(ctx, req)
}

func (p partial) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	if p.step < 5 {
		return slices.Repeat([]error{errNotYet}, len(reqs))
	}
	return p.Forward.Extend(ctx, reqs)
}

// upTo returns a harness of engines as far as a step.
func upTo(step int) enginetest.Harness {
	without := driver.Capabilities{List: step < 7, Shared: step < 8, Semaphore: step < 8, Queue: step < 9}
	h := harness
	h.Open = func(tb testing.TB) driver.Engine {
		return partial{driver.Forward{Engine: harness.Open(tb), Without: without}, step}
	}
	h.Join = func(tb testing.TB, e driver.Engine) driver.Engine {
		return partial{driver.Forward{Engine: harness.Join(tb, e.(partial).Engine), Without: without}, step}
	}
	return h
}

// TestSteps checks that the requirements of each step in docs/internals/engines.md pass without the
// later steps.
func TestSteps(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]enginetest.Requirement{}
	for _, r := range enginetest.Requirements() {
		all[r.Name] = r
	}
	checked := 0
	for step := 3; step <= 9; step++ {
		h := upTo(step)
		var applies map[string]bool
		h.Bubble(t, func(t *testing.T) { applies = enginetest.Applicable(t, h) })
		for _, name := range namedIn(string(page), step) {
			switch {
			case applies[name]:
				checked++
				t.Run(fmt.Sprintf("%d/%s", step, name), func(t *testing.T) {
					h.Bubble(t, func(t *testing.T) { all[name].Check(t, h) })
				})
			case !strings.HasPrefix(name, "MaxTTL"): // this store has no greatest TTL
				t.Errorf("%s does not apply to an engine that has come to step %d", name, step)
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d requirements were checked, want at least 100: are the tables read?", checked)
	}
}

// namedIn returns the requirements in the table of a step.
func namedIn(page string, step int) (names []string) {
	_, text, _ := strings.Cut(page, fmt.Sprintf("\n## %d. ", step))
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if row, found := strings.CutPrefix(line, "| "); found {
			cell, _, _ := strings.Cut(row, " | ")
			for _, m := range regexp.MustCompile("`([A-Z]\\w+)`").FindAllStringSubmatch(cell, -1) {
				names = append(names, m[1])
			}
		}
	}
	return names
}
