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

// socketServer starts a server that has a socket too, at a path with a space.
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

// TestSocket: a server's socket and its port are one store, with a password, a number
// and a prefix, for the doctor too; the name of the scheme does not matter.
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

// TestSocketComesBack: what goes on over a socket goes on when the server was away.
func TestSocketComesBack(t *testing.T) {
	server, socket := socketServer(t)
	e := open(t, "valkey+unix://"+socket)
	drivertest.Cycle(t, e, "a")
	server.Kill()
	drivertest.Eventually(t, "nobody answers", func() bool { // what meets the broken connection is unknown
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

// TestSocketOfOthers: a socket that this user may not use does not open for one who
// waits. A firewall says the same of an address, and may say another thing soon.
func TestSocketOfOthers(t *testing.T) {
	for network, want := range map[string]error{"unix": driver.ErrPermission, "tcp": driver.ErrUnavailable} {
		err := clientError(&dialError{&net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.EACCES)}})
		wantIs(t, network, err, want)
	}
}
