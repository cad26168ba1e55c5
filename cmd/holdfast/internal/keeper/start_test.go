//go:build unix

package keeper

import (
	"os"
	"testing"
)

// TestKeeperStartsNoKeeper: a program that did not notice that it is to be a keeper, and went
// on as if it were not, would start one that does the same.
func TestKeeperStartsNoKeeper(t *testing.T) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		t.Fatal("this program was started as a keeper, and runs its tests")
	}
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = []string{"holdfast", Command, "1", "job"}
	orders, reports, err := launch(Order{PID: 1, Name: "job"})
	if err == nil {
		t.Error("it has started one")
		_, _ = orders.Close(), reports.Close()
	}
}
