// Package doctor checks whether a store is fit for locks. It is for engines that are built on
// package rediscore; see driver.Diagnoser.
//
//	doctor.go   Engine, and its Diagnose: which servers there are, and what each check may do
//	server.go   one server: version, memory, persistence, replicas
//	clock.go    its clock, and the way to it
//	info.go     the reply of INFO
//	group.go    sentinels, and the nodes of a cluster
//	rights.go   what the user may do
//	locks.go    every operation on a lock and on one-time tokens of its own
//	sample.go   a sample of the names
//	member.go   Check: one server as a member of a quorum
package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/probe"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// Limit bounds one request, so that a server that hangs does not keep the doctor from the others.
const Limit = 2 * time.Second

// A Way is how the doctor reaches the servers that the engine's client does not know: sentinels,
// and the replicas behind them.
type Way struct {
	Sentinels []string // their addresses
	Master    string   // the sentinels' name for the master

	// Dial connects to a server or a sentinel. If it is nil, the doctor skips both.
	Dial func(ctx context.Context, addr string, sentinel bool) (rediscore.Conn, error)
}

// An Engine is a rediscore.Engine that can check whether its store is fit for locks.
type Engine struct {
	*rediscore.Engine
	way func(rawURL string) (Way, error)
}

// NewEngine returns an engine on a connection; see rediscore.New. way returns the Way for a URL.
func NewEngine(conn rediscore.Conn, opts *rediscore.Options, way func(rawURL string) (Way, error)) (*Engine, error) {
	e, err := rediscore.New(conn, opts)
	if err != nil {
		return nil, err
	}
	return &Engine{e, way}, nil
}

// Capabilities implements driver.Engine.
func (e *Engine) Capabilities() driver.Capabilities {
	c := e.Engine.Capabilities()
	c.Diagnose = true
	return c
}

// A survey is one run of Diagnose.
type survey struct {
	*rediscore.Engine
	store    *rediscore.Store
	req      driver.DiagnoseRequest
	way      Way
	findings []driver.Finding
	member   bool           // the store is a member of a quorum
	first    rediscore.Conn // for commands without a key: a master that replies
	last     rediscore.Conn // another such master, if there is one
}

// A server is a server that Diagnose checks.
type server struct {
	addr   string
	client rediscore.Conn
	err    error // why it does not reply
	info   info  // nil if the user may not run INFO
	timing timing
}

// Diagnose implements driver.Diagnoser. It sends about a hundred small commands and scans a few
// thousand keys of each master. It writes only keys of random names. If the user may not delete
// these, the last of them expire after driver.TokenMemory.
func (e *Engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	way, err := e.way(req.URL)
	if err != nil {
		return driver.Diagnosis{}, err
	}
	s := &survey{Engine: e.Engine, store: e.Store(), req: req, way: way}
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
	rights := engineRights()
	if e.Capabilities().History {
		rights = slices.Insert(rights, 1, historyRights()...) // before the rights that delete the keys
	}
	s.tryRights(ctx, rights, s.store.Keys().Token(strings.Fields(keys.Vault), newProof().Digest())...)
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

// addOn adds a finding about one server.
func (s *survey) addOn(server *server, f driver.Finding) {
	f.Server = server.addr
	s.add(f)
}

// found adds a finding without measures.
func (s *survey) found(level driver.Level, key, server, format string, args ...any) {
	s.add(driver.Finding{Level: level, Key: key, Server: server, Text: fmt.Sprintf(format, args...)})
}

// failed adds a failure.
func (s *survey) failed(key, server string, err error) {
	s.add(driver.Finding{Level: driver.Fail, Key: key, Server: server, Text: err.Error(), Err: probe.Definite(err)})
}

// hidden says why the doctor cannot see something.
func hidden(err error) string {
	if errors.Is(err, driver.ErrPermission) {
		return "not allowed to look"
	}
	return "cannot look: " + err.Error()
}

// tell sends one command and returns its reply.
func (s *survey) tell(ctx context.Context, on rediscore.Sender, words ...string) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	return s.store.Do(ctx, on, rediscore.Command{Words: words})
}

// A step is one request of a check.
type step struct {
	what string
	run  func(context.Context) error
}

// try makes requests one after another until one fails. It adds one finding: the request that
// failed, or that all succeeded.
func (s *survey) try(ctx context.Context, key, done string, steps ...step) {
	for _, step := range steps {
		limited, cancel := context.WithTimeout(ctx, Limit)
		err := step.run(limited)
		cancel()
		if err != nil {
			s.failed(key, "", fmt.Errorf("%s fails: %w", step.what, err))
			return
		}
	}
	s.found(driver.OK, key, "", "%s", done)
}

// expect returns err, or an error if right is false: the reply got is one that no correct store
// gives.
func expect(err error, right bool, got any) error {
	if err == nil && !right {
		err = fmt.Errorf("%w: the answer is wrong (%+v): the server does not do what the scripts rely on", driver.ErrUnsupported, got)
	}
	return err
}

// erase deletes keys of one slot that a check has made, even if ctx has ended. Keys that it cannot
// delete expire.
func (s *survey) erase(ctx context.Context, made []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Limit)
	defer cancel()
	_, _ = s.store.Do(ctx, nil, rediscore.Command{Words: []string{"DEL"}, Keys: made})
}

// reach returns the servers of the store, and a function that closes the connections to them that
// it has made. It fails if no server that the engine uses replies.
func (s *survey) reach(ctx context.Context) (servers []*server, closeAll func(), err error) {
	if err := s.store.Enter(ctx, ""); err != nil {
		return nil, nil, err
	}
	var made []rediscore.Conn
	closeAll = func() {
		for _, client := range made {
			client.Close()
		}
	}
	nodes := s.store.Conn().Nodes()
	answers := 0
	err = errors.New("no server is known")
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
		if !errors.Is(err, ctx.Err()) {
			err = probe.Definite(err)
		}
		return nil, closeAll, err
	}
	s.chooseNodes(servers)
	if s.store.Conn().Mode() != rediscore.BySentinel || s.way.Dial == nil {
		return servers, closeAll, nil
	}
	for _, r := range servers[0].info.replicas() {
		replica := &server{addr: r.addr}
		if replica.client, replica.err = s.dial(ctx, r.addr, false); replica.err == nil {
			made = append(made, replica.client)
			replica.err = s.greet(ctx, replica)
		}
		servers = append(servers, replica)
	}
	return servers, closeAll, nil
}

// chooseNodes sets the clients for commands without a key. The client of a cluster would send these
// to any node, even to one that is down.
func (s *survey) chooseNodes(servers []*server) {
	s.first, s.last = s.store.Conn(), s.store.Conn()
	if s.store.Conn().Mode() != rediscore.InCluster {
		return
	}
	if all := masters(servers); len(all) > 0 {
		s.first, s.last = all[0].client, all[len(all)-1].client
	}
}

// masters returns the servers that reply and are not replicas.
func masters(servers []*server) []*server {
	return slices.DeleteFunc(slices.Clone(servers), func(s *server) bool { return s.err != nil || s.info.isReplica() })
}

// greet sends INFO to a server. A refusal for lack of a right also shows that the server replies.
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
		return form.Malformed("info", reply)
	}
	server.info = parseInfo(text)
	return nil
}

// dial connects to one server, or to one sentinel.
func (s *survey) dial(ctx context.Context, addr string, sentinel bool) (rediscore.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	return s.way.Dial(ctx, addr, sentinel)
}
