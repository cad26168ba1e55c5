//go:build unix

package cli

import (
	"strconv"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keep"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// helper does what the program starts itself for, if args say so. It needs neither
// flags nor help, which take time to set up.
func helper(args []string) (status int, ok bool) {
	switch {
	case len(args) == 3 && args[0] == supervise.WardenCommand:
		return warden(args[1], args[2]), true
	case len(args) == 3 && args[0] == keep.Command:
		return keep.Main(), true
	}
	return 0, false
}

// warden is what run starts its command with. The arguments are the numbers of
// two pipes.
func warden(orders, reports string) int {
	o, err1 := strconv.Atoi(orders)
	r, err2 := strconv.Atoi(reports)
	if err1 != nil || err2 != nil {
		return exit.Usage
	}
	supervise.Warden(o, r)
	return exit.OK
}
