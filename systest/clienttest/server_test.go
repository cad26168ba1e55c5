//go:build unix

package clienttest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/redislock"
)

// storeOfServer is the environment variable that makes this program a server.
const storeOfServer = "HOLDFAST_TEST_SERVER_STORE"

func TestMain(m *testing.M) {
	if store := os.Getenv(storeOfServer); store != "" {
		if err := beServer(store); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if url := os.Getenv(urlOfEvents); url != "" {
		if err := beReader(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

// scratch is a directory for files that all tests share. It is removed after the tests.
var scratch string

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "holdfast-clients-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	return m.Run()
}

// beServer serves the locks of a store, on a port that it prints, until its input ends.
func beServer(store string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // the test has ended
	}()
	engine, err := redislock.Open(context.Background(), store)
	if err != nil {
		return err
	}
	s, err := server.New(engine, nil)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return (&http.Server{Handler: s, ConnContext: server.ConnContext}).Serve(listener)
}

// A process is a server in a process of its own.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	url string
}

// startServer starts a server for the locks of a store.
func startServer(t *testing.T, store string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), storeOfServer+"="+store), os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server has not said where it listens: %v", err)
	}
	p.url = strings.TrimSpace(url)
	return p
}

// freeze suspends the server at an arbitrary point.
func (p *process) freeze() {
	p.t.Helper()
	if err := testsvc.Freeze(p.cmd.Process.Pid); err != nil {
		p.t.Fatal(err)
	}
}

// kill kills the server.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
}

// memoryServer returns the URL of a server in this process, whose exchanges are recorded.
func memoryServer(t *testing.T) string {
	t.Helper()
	s, err := server.New(mem.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(exchange.Recorded(t, s))
	t.Cleanup(h.Close)
	return h.URL
}

// direct returns a client that uses a store without a server.
func direct(t *testing.T, store string) *holdfast.Client {
	t.Helper()
	engine, err := redislock.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	c, err := holdfast.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = engine.Close()
	})
	return c
}
