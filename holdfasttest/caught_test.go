package holdfasttest_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast/internal/faketest"
)

// Which workers of a case run in real time, in addition to virtual time.
const (
	no        = iota // neither: it would take too long
	rightOnly        // the machine may be too slow to show the fault
	both
)

// TestCaught checks that users' tests pass with the right workers and fail with the wrong ones,
// with a text that describes the fault.
func TestCaught(t *testing.T) {
	for _, c := range []struct {
		name         string
		test         func(testing.TB, worker)
		right, wrong worker
		says         string // the text for the wrong worker
		real         int
	}{
		{"ignores a loss", stopsWhenLost, longWorker, deafWorker, `the holder of "import" lost it and has not stopped within 500ms, acquired at`, rightOnly},
		{"ignores that it is cut off", stopsWhenCutOff, longWorker, deafWorker, "after the lease was over", no},
		{"never releases", givesBack, rightWorker, forgetfulWorker, `the lease of "import" was not released, acquired at`, both},
		{"forgets what it lost", stopsWhenLost, longWorker, carelessWorker, `the lease of "import" was lost, and not released even so, acquired at`, no},
		{"releases twice", writesUnderLock, onceWorker, twiceWorker, "wrote the receipt without the lock", both},
		{"holds across a wait", waitsWithEmptyHands, modestWorker, greedyWorker, "it has the orders while it waits for the stock", both},
		{"works without a lock", stopsWithoutStore, rightWorker, boldWorker, "wrote a row without the lock", no},
		{"ignores its time", keepsToItsTime, rightWorker, patientWorker, "want 100 ms", no},
		{"repeats what is done", writesOnce, rightWorker, zealousWorker, "2 rows", both},
		{"stands in no queue", waitsInQueue, rightWorker, knockingWorker, `0 wait for "import" after 20s, want 1`, rightOnly},
		{"locks within one process", excludesOthers, rightWorker, localWorker(), "two write at once", rightOnly},
	} {
		passes := func(t *testing.T) {
			if texts := faketest.Run(t, func(t testing.TB) { c.test(t, c.right) }); texts != nil {
				t.Errorf("the right worker: %q", texts)
			}
		}
		caught := func(t *testing.T) {
			if texts := faketest.Run(t, func(t testing.TB) { c.test(t, c.wrong) }); !strings.Contains(strings.Join(texts, "\n"), c.says) {
				t.Errorf("the wrong worker: %q, want one that says %q", texts, c.says)
			}
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, passes)
			synctest.Test(t, caught)
		})
		if c.real != no {
			t.Run(c.name+", in real time", func(t *testing.T) {
				t.Parallel()
				if passes(t); c.real == both {
					caught(t)
				}
			})
		}
	}
}

// TestNamesTheLine checks that a lease that is left is reported with the line that acquired it.
func TestNamesTheLine(t *testing.T) {
	_, file, _, _ := runtime.Caller(0)
	want := strings.TrimSuffix(file, "caught_test.go") + "workers_test.go:" + fmt.Sprint(lineOf(t, "workers_test.go", "// the line that the kit names"))
	texts := faketest.Run(t, func(t testing.TB) { givesBack(t, forgetfulWorker) })
	want = `holdfasttest: the lease of "import" was not released, acquired at ` + want
	if len(texts) != 1 || texts[0] != want {
		t.Errorf("%q, want %s", texts, want)
	}
}

// lineOf returns the number of the line that contains text.
func lineOf(t *testing.T, file, text string) int {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(source), "\n") {
		if strings.Contains(line, text) {
			return i + 1
		}
	}
	t.Fatalf("%s has no line with %q", file, text)
	return 0
}
