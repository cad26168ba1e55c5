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

// maxMessage is how many bytes of a message are read. The rest is lost.
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

// A Message is a message of a command: the last value of each key.
type Message map[string]string

// parseMessage parses a message. It skips lines that are not of the form KEY=VALUE.
func parseMessage(data string) Message {
	m := Message{}
	for line := range strings.SplitSeq(data, "\n") {
		if key, value, found := strings.Cut(line, "="); found && key != "" {
			m[key] = value
		}
	}
	return m
}

// Serve calls heard for each message, until Close. Descriptors that come with a message are
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
