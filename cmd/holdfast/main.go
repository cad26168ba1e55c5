// Holdfast runs commands under distributed locks, and shows who holds them.
package main

import (
	"os"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
