package toyengine_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/examples/toyengine"
)

// A store is an engine with its store, so that Join can open another.
type store struct {
	*toyengine.Engine
	*toyengine.Store
}

var harness = enginetest.Harness{
	Open: func(testing.TB) driver.Engine {
		s := toyengine.New()
		return store{s.Open(), s}
	},
	Join:   func(_ testing.TB, e driver.Engine) driver.Engine { return e.(store).Open() },
	Unit:   time.Second,
	Bubble: synctest.Test,
}

func TestConformance(t *testing.T) { enginetest.Run(t, harness) }

// TestConformanceBehindForward checks that wrappers of the engine pass, too.
func TestConformanceBehindForward(t *testing.T) { enginetest.RunForwarded(t, harness) }

// TestSize checks that the engine is as small as docs/internals/engines.md promises.
func TestSize(t *testing.T) {
	source, err := os.ReadFile("toyengine.go")
	if err != nil {
		t.Fatal(err)
	}
	code := 0
	for line := range strings.Lines(string(source)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			code++
		}
	}
	if code > 250 {
		t.Errorf("%d lines of code, want 250 at most", code)
	}
}
