//go:build unix

package keeper

import (
	"os"
	"testing"
)

// TestKeeperStartsNoKeeper checks that a keeper cannot start a keeper. Otherwise a program that
// overlooked its own role would start another one like itself, without end.
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
