// Holdfast runs commands under distributed locks, and shows who holds them.
package main

import (
	"log/slog"
	"os"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/cli"
)

// root is put before the paths of files that belong to the system, such as
// /etc/holdfast.conf. Tests have the linker set it, so that they meet no file of the
// machine's.
var root string

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a command reports what matters itself; serve has a log
	os.Exit(cli.Main(os.Args[1:], os.Getenv, root, os.Stdout, os.Stderr))
}
