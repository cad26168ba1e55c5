package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/probe"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// lagLimit is how many seconds a replica may be silent without a warning. A healthy replica
// acknowledges every second.
const lagLimit = 5

// lookAt checks one server.
func (s *survey) lookAt(ctx context.Context, server *server) {
	if server.err != nil {
		// If locks need this server, another check fails: reach for a single server, the slots for
		// a cluster.
		s.found(driver.Warn, "server", server.addr, "it does not answer: %s: see whether it runs", server.err)
		return
	}
	if server.info == nil {
		s.found(driver.Warn, "server", server.addr,
			"not allowed to look at version, memory, persistence and replicas: give the user the right to run info, or look yourself")
	} else {
		s.lookAtVersion(server)
		s.lookAtMemory(server)
		s.lookAtPersistence(ctx, server)
		if !server.info.isReplica() {
			s.lookAtReplicas(ctx, server)
		}
	}
	s.lookAtClock(ctx, server)
	if trip := server.timing.roundTrip; trip > 0 && !server.info.isReplica() {
		s.addOn(server, probe.Trip("round_trip", trip, s.req.TTL, probe.Brief(trip)+" to the server and back", ", or a store that is nearer"))
	}
}

func (s *survey) lookAtVersion(server *server) {
	role := "master"
	if server.info.isReplica() {
		role = "replica"
	}
	text := server.info.product() + ", " + role
	enough, known := server.info.newEnough()
	switch {
	case !known:
		s.found(driver.Warn, "server", server.addr, "%s: its version is unknown: it must have the commands of Redis 6.2", text)
	case !enough:
		s.failed("server", server.addr, fmt.Errorf("%s is %w: update it to Redis 6.2 or later, or Valkey", text, driver.ErrUnsupported))
	default:
		s.found(driver.OK, "server", server.addr, "%s", text)
	}
}

func (s *survey) lookAtMemory(server *server) {
	limit, policy := server.info.number("maxmemory"), server.info["maxmemory_policy"]
	switch {
	case server.info["maxmemory"] == "":
		s.found(driver.Warn, "memory", server.addr, "the server does not tell its maxmemory: see that it evicts no keys")
	case limit == 0:
		s.found(driver.OK, "memory", server.addr, "no maxmemory, so that nothing is evicted (maxmemory-policy %s)", policy)
	case policy == "noeviction":
		s.found(driver.OK, "memory", server.addr, "maxmemory-policy noeviction, %d of %d MiB used", server.info.number("used_memory")>>20, limit>>20)
	default:
		s.found(driver.Warn, "memory", server.addr,
			"maxmemory-policy %s: the server may delete a lock that is held, and grant it again: set maxmemory-policy noeviction", policy)
	}
}

func (s *survey) lookAtPersistence(ctx context.Context, server *server) {
	risk := "a restart frees all locks while their holders work: set appendonly yes, " +
		"or let only resources that check fencing tokens rely on the locks"
	if s.member {
		risk = "a restart loses what this member knows of the locks, and it grants nothing until all that it may have forgotten is over: set appendonly yes"
	}
	if server.info["aof_enabled"] == "1" {
		s.found(driver.OK, "persistence", server.addr, "append-only file")
		return
	}
	save, err := s.config(ctx, server, "save")
	switch {
	case err != nil:
		s.found(driver.Warn, "persistence", server.addr, "no append-only file, and %s at the snapshots: %s", hidden(err), risk)
	case save == "":
		s.found(driver.Warn, "persistence", server.addr, "none: %s", risk)
	default:
		s.found(driver.OK, "persistence", server.addr,
			"snapshots only (save %s): a restart frees the locks that are newer than the last; appendonly yes keeps more", save)
	}
}

func (s *survey) lookAtReplicas(ctx context.Context, server *server) {
	least, err := s.config(ctx, server, "min-replicas-to-write")
	lag := ""
	if err == nil {
		lag, err = s.config(ctx, server, "min-replicas-max-lag")
	}
	rule := "min-replicas-to-write " + least + ", min-replicas-max-lag " + lag
	if err != nil {
		rule = hidden(err) + " at min-replicas-to-write"
	}
	// A node of a cluster stops by itself when it reaches too few of the others.
	goesOn := err == nil && (least == "0" || lag == "0") && s.store.Conn().Mode() != rediscore.InCluster
	s.add(replicasFinding(server, rule, goesOn))
}

// replicasFinding reports the state of a master's replicas. goesOn says that the master grants
// locks even if it reaches no replica.
func replicasFinding(server *server, rule string, goesOn bool) driver.Finding {
	replicas := server.info.replicas()
	counts := map[string]int64{"replicas": int64(len(replicas))}
	var unwell []string
	var behind int64
	for _, r := range replicas {
		switch behind = max(behind, r.behind); {
		case !r.online:
			unwell = append(unwell, r.addr+" is not online")
		case r.silent > lagLimit:
			unwell = append(unwell, fmt.Sprintf("%s has been silent for %d s, %d bytes behind", r.addr, r.silent, r.behind))
		}
	}
	counts["behind_bytes"] = behind
	f := driver.Finding{Key: "replicas", Server: server.addr, Counts: counts}
	switch {
	case len(unwell) > 0:
		f.Level = driver.Warn
		f.Text = fmt.Sprintf("%s: if one of them takes over, its locks are granted again: see why (%s)", strings.Join(unwell, "; "), rule)
	case len(replicas) == 0:
		f.Text = "none (" + rule + ")"
	case goesOn:
		f.Level = driver.Warn
		f.Text = fmt.Sprintf("%d, at most %d bytes behind, but a master that is cut off from them goes on, while another takes over and grants the same locks: "+
			"set min-replicas-to-write 1 and a small min-replicas-max-lag (%s)", len(replicas), behind, rule)
	default:
		f.Text = fmt.Sprintf("%d, at most %d bytes behind (%s)", len(replicas), behind, rule)
	}
	return f
}

// config returns a setting of the server.
func (s *survey) config(ctx context.Context, server *server, name string) (string, error) {
	reply, err := s.tell(ctx, server.client, "CONFIG", "GET", name)
	if err != nil {
		return "", err
	}
	var key, value string
	if settings, ok := reply.(map[string]any); ok { // in RESP 3
		value, _ = settings[name].(string)
	} else if !form.Read(reply, &key, &value) {
		return "", form.Malformed("config", reply)
	}
	return value, nil
}
