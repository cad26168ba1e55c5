//go:build unix

package cli

import (
	"strconv"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// helper runs the program as its own warden or keeper, if args ask for that. It sets up no
// flags, which takes time.
func helper(args []string) (status int, ok bool) {
	switch {
	case len(args) == 3 && args[0] == supervise.WardenCommand:
		return warden(args[1], args[2]), true
	case len(args) == 3 && args[0] == keeper.Command:
		return keeper.Main(), true
	}
	return 0, false
}

// warden is the parent of the command of run. The arguments are the numbers of two pipes.
func warden(orders, reports string) int {
	o, err1 := strconv.Atoi(orders)
	r, err2 := strconv.Atoi(reports)
	if err1 != nil || err2 != nil {
		return exit.Usage
	}
	supervise.Warden(o, r)
	return exit.OK
}
