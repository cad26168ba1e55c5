//go:build unix

package supervise

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded are the signals that people and init systems send to a command.
var forwarded = [...]syscall.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2,
}

// Catch delivers the signals to forward to the channel, except those that this process has
// ignored from the start (nohup, a background job of a script): the command inherits that.
func Catch(signals chan<- os.Signal) {
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
}

// Ends reports whether sig asks a process to end.
func Ends(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}
