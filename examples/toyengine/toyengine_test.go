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

// store is one on which engines may be joined.
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

// TestConformanceBehindForward: wrappers of the engine pass, too.
func TestConformanceBehindForward(t *testing.T) { enginetest.RunForwarded(t, harness) }

// TestSize: docs/internals/engines.md says that an engine is small.
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
