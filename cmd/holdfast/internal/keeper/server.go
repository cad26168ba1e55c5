//go:build unix

package keeper

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// conversations is how many requests are handled at a time. Others wait.
	conversations = 16

	// requestTime bounds how long a request may take to arrive, and how long the client may take
	// to read the reply.
	requestTime = 5 * time.Second
)

// A Handler handles a request. It may be called concurrently.
type Handler func(context.Context, Request) Answer

// A Server listens on a socket of its own. A nil Server does nothing.
type Server struct {
	listener *net.UnixListener
	path     string
	handler  atomic.Pointer[Handler] // nil before Serve
	busy     sync.WaitGroup          // requests in progress
}

// Listen makes a socket in a directory that only this user can open. Requests wait until Serve is
// called. The caller must call Close.
func Listen(getenv func(string) string) (*Server, error) {
	path, err := NewPath(getenv)
	if err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return &Server{listener: listener, path: path}, nil
}

// NewPath returns the path for a new socket, in a directory that only this user can open.
func NewPath(getenv func(string) string) (string, error) {
	dir, err := directory(getenv)
	return filepath.Join(dir, socketName()), err
}

// socketName returns a name that no other process uses. The PID in it is for people.
func socketName() string {
	return fmt.Sprintf("%d-%s%s", os.Getpid(), rand.Text()[:12], suffix)
}

// Path returns the path of the socket, or "".
func (s *Server) Path() string {
	if s == nil {
		return ""
	}
	return s.path
}

// None stands for the path in a run without a socket: commands must not use its lease.
const None = "none"

// Entry returns the environment entry for the socket at path, or for None if path is empty.
func Entry(path string) string { return SocketVariable + "=" + cmp.Or(path, None) }

// Serve handles requests in the background, until Close. Another call replaces the handler, for
// the next job.
func (s *Server) Serve(handler Handler) {
	if s == nil || s.handler.Swap(&handler) != nil {
		return
	}
	s.busy.Add(1)
	go s.accept()                  // ends with the listener
	go sweep(filepath.Dir(s.path)) // ends soon, or with the program
}

func (s *Server) accept() {
	defer s.busy.Done()
	turns := make(chan struct{}, conversations)
	for {
		conn, err := s.listener.Accept()
		switch {
		case err == nil:
		case isTemporary(err):
			time.Sleep(10 * time.Millisecond)
			continue
		default:
			return
		}
		turns <- struct{}{}
		s.busy.Go(func() { // ends when the handler has returned and the reply is sent
			defer func() { <-turns }()
			attend(conn, *s.handler.Load())
		})
	}
}

// attend handles one request. Other users get no reply.
func attend(conn net.Conn, handler Handler) {
	defer conn.Close()
	var r Request
	_ = conn.SetDeadline(time.Now().Add(requestTime))
	if checkPeer(conn) != nil || readLine(conn, &r) != nil {
		return
	}
	answer := handler(context.Background(), r)
	_ = conn.SetDeadline(time.Now().Add(requestTime))
	_ = json.NewEncoder(conn).Encode(answer) // the client may be gone
}

// Close closes the socket. Requests in progress go on.
func (s *Server) Close() {
	if s != nil {
		_ = s.listener.Close() // also unlinks it
	}
}

// Drain is Close, and waits a moment for the requests in progress.
func (s *Server) Drain() {
	if s == nil {
		return
	}
	s.Close()
	done := make(chan struct{})
	go func() { // ends soon, or with the program
		defer close(done)
		s.busy.Wait()
	}()
	select {
	case <-done:
	case <-time.After(requestTime):
	}
}
