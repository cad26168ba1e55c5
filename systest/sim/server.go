package sim

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A server is a Redis server in memory. Its clock is the local one, which is virtual in a bubble
// of testing/synctest, plus an offset.
type server struct {
	scripts *Scripts
	// watch, if not nil, is called after each script with the script's keys and reply, while the
	// server is locked.
	watch func(keys []string, reply any)

	mu     sync.Mutex // guards the rest
	space  *keyspace
	loaded map[string]bool
	offset time.Duration
	inbox  map[string][]*session // subscribers by channel
}

// A session is one connection, as the server sees it.
type session struct {
	send     func([]byte) // must not block
	channels []string
}

// newServer returns an empty server.
func newServer(scripts *Scripts) *server {
	return &server{scripts: scripts, space: newKeyspace(), loaded: map[string]bool{}, inbox: map[string][]*session{}}
}

func (s *server) tickLocked() {
	s.space.clock = time.Now().Add(s.offset).UnixMicro()
}

// instantLocked returns the time at which the server's clock shows millis, if it is not stepped
// meanwhile.
func (s *server) instantLocked(millis int64) time.Time {
	return time.UnixMilli(millis).Add(-s.offset)
}

// step moves the clock.
func (s *server) step(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
}

// restart clears the state of the server's process, and the data too unless keep is set.
func (s *server) restart(keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.loaded)
	clear(s.inbox)
	if !keep {
		clear(s.space.data)
	}
}

func (s *server) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.space.data)
}

// handle executes one command and sends the reply.
func (s *server) handle(from *session, args []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickLocked()
	switch strings.ToUpper(args[0]) {
	case "SUBSCRIBE", "UNSUBSCRIBE":
		s.subscribeLocked(from, strings.ToLower(args[0]), args[1:])
	case "HELLO":
		from.send(encodeHello())
	default:
		from.send(encode(s.doLocked(args)))
	}
}

func (s *server) doLocked(args []string) any {
	switch strings.ToUpper(args[0]) {
	case "PING":
		return status("PONG")
	case "CLIENT", "SELECT":
		return status("OK")
	case "PUBLISH":
		if len(args) != 3 {
			return errSyntax
		}
		return s.publishLocked(args[1], args[2])
	case "SCRIPT":
		if len(args) != 3 || !strings.EqualFold(args[1], "LOAD") {
			return errSyntax
		}
		hash, err := s.scripts.load(args[2])
		if err != nil {
			return failure("ERR Error compiling script: " + err.Error())
		}
		s.loaded[hash] = true
		return hash
	case "EVAL", "EVALSHA":
		return s.evalLocked(args)
	}
	return s.space.do(args)
}

// evalLocked runs a script by its text or by its hash.
func (s *server) evalLocked(args []string) any {
	if len(args) < 3 {
		return errSyntax
	}
	n, err := strconv.Atoi(args[2])
	if err != nil || n < 0 || n > len(args)-3 {
		return failure("ERR Number of keys can't be greater than number of args")
	}
	hash := args[1]
	if strings.EqualFold(args[0], "EVAL") {
		if hash, err = s.scripts.load(args[1]); err != nil {
			return failure("ERR Error compiling script: " + err.Error())
		}
		s.loaded[hash] = true
	}
	if !s.loaded[hash] {
		return failure("NOSCRIPT No matching script. Please use EVAL.")
	}
	keys := args[3 : 3+n]
	reply := s.scripts.run(hash, keys, args[3+n:], s.doLocked)
	if s.watch != nil {
		s.watch(keys, reply)
	}
	return reply
}

func (s *server) publishLocked(channel, message string) any {
	for _, to := range s.inbox[channel] {
		to.send(encodePush("message", channel, message))
	}
	return int64(len(s.inbox[channel]))
}

func (s *server) subscribeLocked(from *session, verb string, channels []string) {
	if verb == "unsubscribe" && len(channels) == 0 {
		channels = slices.Clone(from.channels)
	}
	for _, channel := range channels {
		s.leaveLocked(from, channel)
		if verb == "subscribe" {
			from.channels = append(from.channels, channel)
			s.inbox[channel] = append(s.inbox[channel], from)
		}
		from.send(encodePush(verb, channel, int64(len(from.channels))))
	}
}

func (s *server) leaveLocked(from *session, channel string) {
	same := func(other *session) bool { return other == from }
	s.inbox[channel] = slices.DeleteFunc(s.inbox[channel], same)
	from.channels = slices.DeleteFunc(from.channels, func(c string) bool { return c == channel })
}

// leave ends a session.
func (s *server) leave(from *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, channel := range slices.Clone(from.channels) {
		s.leaveLocked(from, channel)
	}
}
