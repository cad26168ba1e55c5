package cli

import (
	"testing"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/serve"
)

// TestMayListen checks that an address that other hosts can reach needs --callers or --insecure.
func TestMayListen(t *testing.T) {
	for _, c := range []struct {
		flags   serveFlags
		address string
		may     bool
	}{
		{serveFlags{}, serve.DefaultAddress, true},
		{serveFlags{}, "0.0.0.0:7420", false},
		{serveFlags{callers: "file"}, "0.0.0.0:7420", true},
		{serveFlags{insecure: true}, "0.0.0.0:7420", true},
	} {
		address, err := serve.ParseAddress(c.address)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.flags.mayListen(address); (err == nil) != c.may || err != nil && !exit.Is(err, exit.Config) {
			t.Errorf("%+v, %s: %v", c.flags, c.address, err)
		}
	}
}
