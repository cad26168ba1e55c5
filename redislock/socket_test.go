package redislock

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// socketServer starts a server that also has a socket, at a path with a space.
func socketServer(t *testing.T, extraArgs ...string) (server *testsvc.Server, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "the server.sock")
	return testsvc.Redis(t, append(extraArgs, "--unixsocket", socket)...), strings.ReplaceAll(socket, " ", "%20")
}

// TestSocket checks that a server's socket and its port are one store, with a password, a number
// and a prefix, also for the doctor, whichever scheme the URL has.
func TestSocket(t *testing.T) {
	server, socket := socketServer(t, "--requirepass", secret)
	for _, login := range []string{":" + secret + "@", "default:" + secret + "@"} {
		for _, scheme := range []string{"redis", "valkey"} {
			local := open(t, scheme+"+unix://"+login+socket+"?db=2&prefix=p:")
			remote := open(t, scheme+"://"+login+server.Addr+"/2?prefix=p:")
			drivertest.Cycle(t, local, "a")
			req := drivertest.Request("a", drivertest.Patience)
			drivertest.Granted(t, local, req)
			drivertest.Held(t, remote, drivertest.Request("a", drivertest.Patience))
			drivertest.Release(t, local, req)
			diagnosis, err := local.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: drivertest.Patience, URL: scheme + "+unix://" + login + socket + "?db=2"})
			if err != nil || diagnosis.Worst() == driver.Fail {
				t.Errorf("the doctor says %+v, %v", diagnosis, err)
			}
		}
	}
	for url, want := range map[string]error{
		"redis+unix://" + socket:                          driver.ErrPermission,
		"redis+unix://:wrong" + secret + "@" + socket:     driver.ErrPermission,
		"redis+unix://:" + secret + "@" + socket + "more": driver.ErrUnavailable,
	} {
		_, err := Open(t.Context(), url)
		wantIs(t, "open "+url, err, want)
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%v has the password in it", err)
		}
	}
}

// TestSocketComesBack checks that work over a socket continues when the server returns.
func TestSocketComesBack(t *testing.T) {
	server, socket := socketServer(t)
	e := open(t, "valkey+unix://"+socket)
	drivertest.Cycle(t, e, "a")
	server.Kill()
	drivertest.Eventually(t, "nobody answers", func() bool { // requests on the broken connection have an unknown outcome
		_, err := e.Acquire(t.Context(), drivertest.Request("a", drivertest.Patience))
		if err != nil && !errors.Is(err, driver.ErrUnavailable) && driver.Definite(err) {
			t.Errorf("acquire without a server: %v", err)
		}
		return errors.Is(err, driver.ErrUnavailable)
	})
	server.Restart()
	drivertest.Eventually(t, "it is answered again", func() bool {
		_, err := e.Inspect(t.Context(), "a")
		return err == nil
	})
	drivertest.Cycle(t, e, "a")
}

// TestSocketOfOthers checks that a socket without permission fails at once: waiting would not help.
// A firewall causes the same error for an address, where it may change soon.
func TestSocketOfOthers(t *testing.T) {
	for network, want := range map[string]error{"unix": driver.ErrPermission, "tcp": driver.ErrUnavailable} {
		err := clientError(&dialError{&net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.EACCES)}})
		wantIs(t, network, err, want)
	}
}
