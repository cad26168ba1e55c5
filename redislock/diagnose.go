package redislock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
)

var _ driver.Diagnoser = (*Engine)(nil)

// lookTimeout bounds one request of Diagnose, so that one server that hangs
// does not keep it from the others.
const lookTimeout = 2 * time.Second

// A survey is one run of Diagnose.
type survey struct {
	*Engine
	req      driver.DiagnoseRequest
	opts     rueidis.ClientOption // of req.URL
	hosts    []string             // of req.URL
	findings []driver.Finding
	member   bool // the store is one of a quorum's
	first    Conn // for commands without a key: a master that answers
	last     Conn // another one, if there is
}

// A server is one that Diagnose looks at.
type server struct {
	addr   string
	client Conn
	err    error // why it does not answer
	info   info  // nil if it does not let us see
	timing timing
}

// Diagnose implements driver.Diagnoser. It sends some hundred small commands,
// looks at some thousand keys of each master, and changes nothing but keys of
// a random name, the last of which expire after driver.TokenMemory where the
// user may not delete them.
func (e *Engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	if err := e.enter(ctx, ""); err != nil {
		return driver.Diagnosis{}, err
	}
	s := &survey{Engine: e, req: req}
	if req.URL != "" {
		opts, _, err := parseURL(req.URL)
		if err != nil {
			return driver.Diagnosis{}, err
		}
		s.opts, s.hosts = opts, opts.InitAddress
	}
	servers, closeAll, err := s.reach(ctx)
	if err != nil {
		return driver.Diagnosis{}, err
	}
	defer closeAll()
	for _, server := range servers {
		s.lookAt(ctx, server)
	}
	s.compareClocks(servers)
	s.lookAtSentinels(ctx)
	s.lookAtCluster(ctx, servers)
	s.tryRights(ctx, engineRights(), s.keys.vault(newDigest())...)
	s.tryMessages(ctx)
	s.tryLocks(ctx)
	s.tryVault(ctx)
	s.lookAtKeys(ctx, servers)
	if ctx.Err() != nil {
		return driver.Diagnosis{}, fmt.Errorf("the checks took too long: %w", ctx.Err())
	}
	return driver.Diagnosis{Findings: s.findings}, nil
}

func (s *survey) add(f driver.Finding) { s.findings = append(s.findings, f) }

// found adds a finding without figures.
func (s *survey) found(level driver.Level, key, server, format string, args ...any) {
	s.add(driver.Finding{Level: level, Key: key, Server: server, Text: fmt.Sprintf(format, args...)})
}

// failed adds a failure.
func (s *survey) failed(key, server string, err error) {
	s.add(driver.Finding{Level: driver.Fail, Key: key, Server: server, Text: err.Error(), Err: definite(err)})
}

// definite returns err as one that wraps a definite error: what has no class
// is a store that does not serve.
func definite(err error) error {
	if driver.Definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
}

// hidden says that we may not see something, or why we do not.
func hidden(err error) string {
	if errors.Is(err, driver.ErrPermission) {
		return "not allowed to look"
	}
	return "cannot look: " + err.Error()
}

// tell sends one command and returns its reply.
func (s *survey) tell(ctx context.Context, on Sender, words ...string) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return s.ask(ctx, func() (any, error) { return on.Do(ctx, Command{Words: words}) })
}

// erase deletes keys of one slot that a check has made, even if ctx has ended.
// What cannot be deleted expires by itself.
func (s *survey) erase(ctx context.Context, keys []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	_, _ = s.do(ctx, Command{Words: []string{"DEL"}, Keys: keys})
}

// reach returns the servers of the store, and a function that closes the
// connections made for them. It fails if none of those that the engine uses
// answers.
func (s *survey) reach(ctx context.Context) (servers []*server, closeAll func(), err error) {
	var made []Conn
	closeAll = func() {
		for _, client := range made {
			client.Close()
		}
	}
	nodes := s.conn.Nodes()
	answers := 0
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		node := &server{addr: addr, client: nodes[addr]}
		if node.err = s.greet(ctx, node); node.err == nil {
			answers++
		} else {
			err = node.err
		}
		servers = append(servers, node)
	}
	if answers == 0 {
		if err == nil {
			err = errors.New("no server is known")
		}
		return nil, closeAll, openError(ctx, err)
	}
	s.chooseNodes(servers)
	if s.conn.Mode() != BySentinel || s.opts.InitAddress == nil {
		return servers, closeAll, nil
	}
	for _, addr := range servers[0].info.replicaAddrs() {
		replica := &server{addr: addr}
		if replica.client, replica.err = s.connect(ctx, addr, false); replica.err == nil {
			made = append(made, replica.client)
			replica.err = s.greet(ctx, replica)
		}
		servers = append(servers, replica)
	}
	return servers, closeAll, nil
}

// chooseNodes sets the clients for commands without a key. The client of a
// cluster would send those to any node, also to one that is down.
func (s *survey) chooseNodes(servers []*server) {
	s.first, s.last = s.conn, s.conn
	if s.conn.Mode() != InCluster {
		return
	}
	known := false
	for _, server := range servers {
		if server.err != nil || server.info.isReplica() {
			continue
		}
		if s.last = server.client; !known {
			s.first, known = server.client, true
		}
	}
}

// greet asks a server about itself. Not being allowed to know is an answer.
func (s *survey) greet(ctx context.Context, server *server) error {
	reply, err := s.tell(ctx, server.client, "INFO")
	if errors.Is(err, driver.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	text, ok := reply.(string)
	if !ok {
		return errMalformed("info", reply)
	}
	server.info = parseInfo(text)
	return nil
}

// connect connects to one server, or to one sentinel, as the URL says.
func (s *survey) connect(ctx context.Context, addr string, sentinel bool) (Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	opts, board := s.opts, newSwitchboard(s.life, 0)
	opts.InitAddress, opts.ForceSingleClient, opts.DialCtxFn = []string{addr}, true, board.dial
	if sentinel {
		opts.Username, opts.Password, opts.SelectDB = s.opts.Sentinel.Username, s.opts.Sentinel.Password, 0
	}
	opts.Sentinel = rueidis.SentinelOption{}
	client, err := newClient(ctx, opts)
	if err != nil {
		return nil, err
	}
	return newConn(client, board), nil
}
