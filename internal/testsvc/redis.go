//go:build unix

package testsvc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// A Server is one server process. Its methods fail the test on an error, and must be called from
// the test's goroutine.
type Server struct {
	Addr string // host:port, the same over restarts
	URL  string // redis://host:port

	instance
}

// Redis starts a server, Redis or Valkey, without persistence and without a password, and
// returns when it accepts connections. The extra arguments are options as on
// its command line ("--requirepass", "secret") and override those that Redis
// sets. The server is stopped when the test and its subtests have ended.
func Redis(t testing.TB, extraArgs ...string) *Server {
	t.Helper()
	return redisServer(t, ready, func(s *Server) []string { return dataArgs(s, extraArgs) })
}

// ready is in the output of a data server, as opposed to a sentinel, when it is ready.
const ready = "Ready to accept connections"

// dataArgs returns the arguments of a data server without persistence.
func dataArgs(s *Server, extraArgs []string) []string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--protected-mode", "no",
	}, extraArgs...)
}

// LookServer returns the path of redis-server, or if it is missing, of valkey-server, which takes
// the same options and prints the same text when it is ready.
func LookServer() (string, error) {
	for _, program := range []string{"redis-server", "valkey-server"} {
		if path, ok := look(program); ok {
			return path, nil
		}
	}
	return "", errors.New("neither redis-server nor valkey-server found: install one (Debian: apt-get install redis-server, macOS: brew install redis)")
}

// redisServer starts redis-server or valkey-server with the arguments that args returns, which may
// depend on the address. Its output contains ready when it is ready.
func redisServer(t testing.TB, ready string, args func(*Server) []string) *Server {
	t.Helper()
	program, err := LookServer()
	must(t, err)
	return startServer(t, program, ready, args)
}

// Program starts any program that listens on an address of its own, such as holdfast
// serve, and returns when its output contains ready. The arguments that args
// returns may depend on the address and on a directory for its files.
func Program(t testing.TB, program, ready string, args func(addr, dir string) []string) *Server {
	t.Helper()
	s := startServer(t, program, ready, func(s *Server) []string { return args(s.Addr, s.dir) })
	s.URL = "http://" + s.Addr
	return s
}

// startServer starts the program on a free port.
func startServer(t testing.TB, program, ready string, args func(*Server) []string) *Server {
	t.Helper()
	s := &Server{instance: instance{t: t, program: program, ready: ready, command: ownCommand}}
	t.Cleanup(s.end)
	s.startOnPort(func(port int) []string {
		s.Addr = fmt.Sprintf("127.0.0.1:%d", port)
		s.URL = "redis://" + s.Addr
		s.dir = t.TempDir()
		return args(s)
	})
	return s
}

// freePort returns a port without a listener. It is below the range from
// which the kernel takes the ports of outgoing connections, so that it stays
// free while a server is being restarted.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 12000 + rand.IntN(20000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no free port on 127.0.0.1")
	return 0
}

// Port returns the port of Addr.
func (s *Server) Port() int {
	s.t.Helper()
	_, text, err := net.SplitHostPort(s.Addr)
	port, err2 := strconv.Atoi(text)
	if err != nil || err2 != nil {
		s.t.Fatalf("address %q has no port", s.Addr)
	}
	return port
}

// Stop freezes the server with SIGSTOP. Connections stay open, and the kernel accepts new ones, but
// the server does not answer.
func (s *Server) Stop() {
	s.t.Helper()
	if err := Freeze(s.running().pid); err != nil {
		s.t.Fatalf("stop %s: %v", s.program, err)
	}
}

// Cont continues a frozen server with SIGCONT.
func (s *Server) Cont() {
	s.t.Helper()
	if err := syscall.Kill(s.running().pid, syscall.SIGCONT); err != nil {
		s.t.Fatalf("continue %s: %v", s.program, err)
	}
}
