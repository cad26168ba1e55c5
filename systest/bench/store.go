package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/bench/peer"
)

// A store is a running server that peers lock in.
type store interface {
	addr() string
	pid() int
	clear() error                // forgets all locks
	cpu() (time.Duration, error) // that serving took until now
}

// A redisStore is one redis-server or valkey-server without persistence.
type redisStore struct{ server *testsvc.Server }

func (s *redisStore) addr() string { return s.server.Addr }
func (s *redisStore) pid() int     { return s.server.PID() }

func (s *redisStore) clear() error {
	_, err := s.server.Do("FLUSHALL")
	return err
}

// cpu returns that of the main thread, which carries out all commands.
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

// infoField returns a field of what INFO says.
func infoField(info, name string) (string, bool) {
	for line := range strings.Lines(info) {
		if field, text, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && field == name {
			return text, true
		}
	}
	return "", false
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

// An inventory has the servers, each started when it is first asked for.
type inventory struct {
	life  *life
	redis *redisStore
	etcd  *etcdStore
}

func (i *inventory) store(kind peer.Store) (store, error) {
	if kind == peer.Etcd {
		if i.etcd == nil {
			var err error
			if i.etcd, err = startEtcd(i.life); err != nil {
				return nil, err
			}
		}
		return i.etcd, nil
	}
	if i.redis == nil {
		i.redis = &redisStore{testsvc.Redis(i.life)}
	}
	return i.redis, nil
}
