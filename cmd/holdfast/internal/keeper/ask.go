//go:build unix

package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"time"
)

// SocketVariable is the environment variable with the path of the socket.
const SocketVariable = "HOLDFAST_SOCKET"

// The requests.
const (
	Check     = "check"
	Extend    = "extend"
	Heartbeat = "heartbeat"
	Release   = "release"
	Complete  = "complete" // of do-once work
	Fail      = "fail"     // of do-once work
)

// A Request is an operation on a lease.
type Request struct {
	Do      string `json:"do"`
	LeaseID string `json:"lease_id"` // of the lease; "": any
	TTLMS   int64  `json:"ttl_ms,omitempty"`
	Value   []byte `json:"value,omitempty"` // the result that Complete records
}

// An Answer is the result of a request.
type Answer struct {
	Status int    `json:"status"`            // exit status of the requesting command
	Error  string `json:"error,omitempty"`   // unless Status is 0
	LeftMS int64  `json:"left_ms,omitempty"` // for how long the lease may be trusted
}

// Left returns how long the lease may be trusted.
func (a Answer) Left() time.Duration { return time.Duration(a.LeftMS) * time.Millisecond }

// ErrGone means that the listening process has ended, before the request or, rarely, before its
// reply.
var ErrGone = errors.New("the process has ended")

// ErrSilent means that the process listens, but has not answered in time.
var ErrSilent = errors.New("it does not answer: the process may be stopped")

// maxLine is more bytes than a request with the largest result takes.
const maxLine = 32 << 20

// Ask sends a request to the socket at path and returns the answer, or ErrGone.
// After any other error the request may have had its effect.
func Ask(ctx context.Context, path string, r Request) (Answer, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return Answer{}, ErrGone
	case err != nil:
		return Answer{}, fmt.Errorf("socket %s: %w", path, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	defer conn.Close()
	if err := checkPeer(conn); err != nil {
		return Answer{}, fmt.Errorf("socket %s: %w", path, err)
	}
	var a Answer
	err = exchange(conn, conn, r, &a)
	switch {
	case err == nil:
		return a, nil
	case ctx.Err() != nil:
		err = ErrSilent
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Answer{}, ErrGone
	}
	return Answer{}, fmt.Errorf("socket %s: %w", path, err)
}

// exchange sends a request and decodes the reply, each a line of JSON.
func exchange(to io.Writer, from io.Reader, request, answer any) error {
	if err := json.NewEncoder(to).Encode(request); err != nil {
		return err
	}
	return readLine(from, answer)
}

// readLine decodes one line of JSON into v.
func readLine(r io.Reader, v any) error {
	line, err := bufio.NewReader(io.LimitReader(r, maxLine)).ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}
