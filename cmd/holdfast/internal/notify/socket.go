package notify

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// A Socket receives the messages of a command that this program has started. A nil Socket
// receives nothing.
type Socket struct {
	conn *net.UnixConn
	path string
}

// maxMessage is the longest message that is read; of a longer one the rest is lost.
const maxMessage = 16 << 10

// Listen makes a socket at path, in a directory that only this user can open. The
// caller must Close it.
func Listen(path string) (*Socket, error) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("socket for messages of the command: %w", err)
	}
	return &Socket{conn, path}, nil
}

// A Message is what a command has said: the last value of each key.
type Message map[string]string

// parseMessage reads what was sent. What is not of the form is left out.
func parseMessage(data string) Message {
	m := Message{}
	for line := range strings.SplitSeq(data, "\n") {
		if key, value, found := strings.Cut(line, "="); found && key != "" {
			m[key] = value
		}
	}
	return m
}

// Serve calls heard for each message, until Close. Descriptors that come along are
// closed, which is what sd_notify_barrier(3) waits for.
func (s *Socket) Serve(heard func(Message)) {
	if s == nil {
		return
	}
	go func() { // ends with Close
		data := make([]byte, maxMessage)
		for {
			n, err := s.conn.Read(data)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				heard(parseMessage(string(data[:n])))
			}
		}
	}()
}

// Close ends the socket.
func (s *Socket) Close() {
	if s != nil {
		_ = s.conn.Close()
		_ = os.Remove(s.path)
	}
}
