package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// These arguments make this program a member of etcd, alone in its cluster, with its data in the
// directory of the next argument. It ends with its standard input.
const (
	etcdRole        = "etcd"
	etcdNoFsyncRole = "etcd-no-fsync" // without fsync
)

// An etcdStatus is the message of the member when it is ready, and after each line that
// it reads.
type etcdStatus struct {
	Addr string
	CPU  time.Duration // of the whole process
}

// serveEtcd is the main function of the member.
func serveEtcd(dir string, fsync bool) error {
	addr, peerAddr := freeAddr(), freeAddr()
	config := embed.NewConfig()
	config.UnsafeNoFsync = !fsync
	config.Dir, config.LogLevel, config.LogOutputs = dir, "fatal", []string{"stderr"}
	config.ListenClientUrls, config.AdvertiseClientUrls = urls(addr), urls(addr)
	config.ListenPeerUrls, config.AdvertisePeerUrls = urls(peerAddr), urls(peerAddr)
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	member, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer member.Close()
	select {
	case <-member.Server.ReadyNotify():
	case <-time.After(time.Minute):
		return errors.New("etcd is not ready after a minute")
	}
	out := json.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); ; {
		cpu, err := ownCPU()
		if err == nil {
			err = out.Encode(etcdStatus{addr, cpu})
		}
		if err != nil || !in.Scan() {
			return err
		}
	}
}

func urls(addr string) []url.URL { return []url.URL{{Scheme: "http", Host: addr}} }

// freeAddr returns an unused address.
func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return ""
	}
	defer l.Close()
	return l.Addr().String()
}

// An etcdStore is a member of etcd in a process of its own.
type etcdStore struct {
	*child[etcdStatus]
	at string
}

func startEtcd(l *life, fsync bool) (*etcdStore, error) {
	role := etcdRole
	if !fsync {
		role = etcdNoFsyncRole
	}
	c, err := startChild[etcdStatus](context.Background(), role, l.TempDir())
	if err != nil {
		return nil, err
	}
	l.Cleanup(c.kill)
	status, err := c.next()
	return &etcdStore{c, status.Addr}, err
}

func (s *etcdStore) addr() string { return s.at }
func (s *etcdStore) pid() int     { return s.cmd.Process.Pid }

// clear does nothing: leases expire, and names are not used twice.
func (s *etcdStore) clear() error { return nil }

// scripts returns zeros: etcd has no scripts.
func (s *etcdStore) scripts() (scripts, error) { return scripts{}, nil }

func (s *etcdStore) cpu() (time.Duration, error) {
	status, err := s.ask()
	return status.CPU, err
}
