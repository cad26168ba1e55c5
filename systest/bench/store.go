package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/bench/peer"
)

// A store is a running server for the locks of peers.
type store interface {
	addr() string
	pid() int
	clear() error                // deletes all locks
	cpu() (time.Duration, error) // of the server until now
	scripts() (scripts, error)   // until now; zeros for servers without scripts
}

// scripts is the work of a server in scripts.
type scripts struct {
	calls   int64
	took    time.Duration // altogether
	longest time.Duration // since forgetStats
}

// A redisStore is one redis-server or valkey-server without persistence.
type redisStore struct{ server *testsvc.Server }

func (s *redisStore) addr() string { return s.server.Addr }
func (s *redisStore) pid() int     { return s.server.PID() }

func (s *redisStore) clear() error {
	_, err := s.server.Do("FLUSHALL", "ASYNC")
	return err
}

// cpu returns the time of the main thread, which executes all commands.
func (s *redisStore) cpu() (time.Duration, error) {
	info, err := s.server.Do("INFO", "cpu")
	if err != nil {
		return 0, err
	}
	var seconds float64
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		text, ok := infoField(info, field)
		v, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			return 0, fmt.Errorf("INFO cpu has no %s: the server is older than 7.0", field)
		}
		seconds += v
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// forgetStats resets the figures of scripts, and makes the server record the longest script.
func (s *redisStore) forgetStats() error {
	if _, err := s.server.Do("CONFIG", "SET", "latency-tracking-info-percentiles", "100"); err != nil {
		return err
	}
	_, err := s.server.Do("CONFIG", "RESETSTAT")
	return err
}

// scripts adds up INFO's figures of the commands that run scripts.
func (s *redisStore) scripts() (all scripts, err error) {
	stats, err := s.server.Do("INFO", "commandstats")
	if err != nil {
		return all, err
	}
	latency, err := s.server.Do("INFO", "latencystats")
	if err != nil {
		return all, err
	}
	for _, command := range []string{"eval", "evalsha"} {
		text, _ := infoField(stats, "cmdstat_"+command) // without the field there were no scripts
		all.calls += int64(infoPart(text, "calls"))
		all.took += microseconds(infoPart(text, "usec"))
		text, _ = infoField(latency, "latency_percentiles_usec_"+command)
		all.longest = max(all.longest, microseconds(infoPart(text, "p100")))
	}
	return all, nil
}

func microseconds(n float64) time.Duration { return time.Duration(n * float64(time.Microsecond)) }

// infoField returns a field of the reply to INFO.
func infoField(info, name string) (string, bool) {
	for line := range strings.Lines(info) {
		if field, text, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && field == name {
			return text, true
		}
	}
	return "", false
}

// infoPart returns a part of a field of INFO: of "calls=3,usec=12", calls is 3. It returns 0 if
// the part is missing or not a number.
func infoPart(text, name string) (v float64) {
	for part := range strings.SplitSeq(text, ",") {
		if key, value, _ := strings.Cut(part, "="); key == name {
			v, _ = strconv.ParseFloat(value, 64)
		}
	}
	return v
}

// version returns the server's name and version.
func (s *redisStore) version() (name, version string) {
	info, err := s.server.Do("INFO", "server")
	if err != nil {
		return "redis-server", "unknown"
	}
	if v, ok := infoField(info, "valkey_version"); ok {
		return "valkey-server", v
	}
	v, _ := infoField(info, "redis_version")
	return "redis-server", v
}

// An inventory has the servers for turns. It starts each when it is first needed.
type inventory struct {
	life    *life
	running map[peer.Store]store
}

func (i *inventory) store(kind peer.Store) (store, error) {
	if s, ok := i.running[kind]; ok {
		return s, nil
	}
	s, err := startStore(i.life, kind)
	if err == nil {
		i.running[kind] = s
	}
	return s, err
}

// startStore starts a server for a life.
func startStore(l *life, kind peer.Store) (store, error) {
	switch kind {
	case peer.Redis:
		return &redisStore{testsvc.Redis(l)}, nil
	case peer.Cluster:
		return startCluster(l), nil
	case peer.Postgres:
		return startPostgres(l), nil
	case peer.PostgresAsync:
		return startPostgres(l, "synchronous_commit=off"), nil
	}
	return startEtcd(l, kind == peer.Etcd)
}
