//go:build unix

package keeper

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
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
	// conversations is how many requests are answered at a time. More have to wait.
	conversations = 16

	// requestTime bounds how long a request may take to arrive, and its answer to
	// be taken.
	requestTime = 5 * time.Second
)

// A Handler answers a request. Several may be called at a time.
type Handler func(context.Context, Request) Answer

// A Server listens on a socket of its own. A nil Server does nothing.
type Server struct {
	listener *net.UnixListener
	path     string
	handler  atomic.Pointer[Handler] // nil before Serve
	busy     sync.WaitGroup          // requests that are being answered
}

// Listen makes a socket in a directory that only this user can open. Requests wait
// until Serve is called. The caller must Close it.
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

// NewPath returns the path of a socket that is to be made, in a directory that only this
// user can open.
func NewPath(getenv func(string) string) (string, error) {
	dir, err := directory(getenv)
	return filepath.Join(dir, socketName()), err
}

// socketName returns a name that no other process uses: the number is for people.
func socketName() string {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%d-%s%s", os.Getpid(), hex.EncodeToString(b[:]), suffix)
}

// Path returns the path of the socket, or "".
func (s *Server) Path() string {
	if s == nil {
		return ""
	}
	return s.path
}

// None is the path of a run that has no socket: commands must not use its lease.
const None = "none"

// Entry returns the environment entry for the socket at path, or for none.
func Entry(path string) string { return SocketVariable + "=" + cmp.Or(path, None) }

// Serve answers requests in the background, until Close. Another call replaces the
// handler: for one job after the other.
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
		s.busy.Go(func() { // ends in requestTime and what the handler takes
			defer func() { <-turns }()
			attend(conn, *s.handler.Load())
		})
	}
}

// attend answers one request. Other users get no answer.
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

// Close ends the socket. What is being answered goes on.
func (s *Server) Close() {
	if s != nil {
		_ = s.listener.Close() // which unlinks it
	}
}

// Drain is Close, and waits a moment for those who are being answered.
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
