package cli

import (
	"errors"
	"testing"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/serve"
)

// TestMayListen: where other hosts come, somebody has said who may do what.
func TestMayListen(t *testing.T) {
	address, err := serve.ParseAddress("0.0.0.0:7420")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags  serveFlags
		public bool
		may    bool
	}{
		{serveFlags{}, false, true},
		{serveFlags{}, true, false},
		{serveFlags{callers: "file"}, true, true},
		{serveFlags{insecure: true}, true, true},
	} {
		err := c.flags.mayListen(address, c.public)
		if e := (*exit.Error)(nil); (err == nil) != c.may || err != nil && (!errors.As(err, &e) || e.Status != exit.Config) {
			t.Errorf("%+v, public %t: %v", c.flags, c.public, err)
		}
	}
}
