package doctor

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// lookAtSentinels asks each sentinel of the URL for the master, and whether enough other sentinels
// are reachable to replace it.
func (s *survey) lookAtSentinels(ctx context.Context) {
	if s.store.Conn().Mode() != rediscore.BySentinel || s.way.Dial == nil {
		return
	}
	masters := map[string][]string{} // sentinels by the master that they name
	for _, host := range s.way.Sentinels {
		master, quorum, err := s.askSentinel(ctx, host)
		if err != nil {
			s.found(driver.Warn, "sentinel", host, "it does not answer: %s: see whether it runs, and what it allows us", err)
			continue
		}
		masters[master] = append(masters[master], host)
		if quorum != nil {
			s.found(driver.Warn, "sentinel", host, "it cannot tell that enough others are there to replace the master: %s", quorum)
			continue
		}
		s.found(driver.OK, "sentinel", host, "it reaches enough others to replace the master")
	}
	s.judgeMasters(masters)
}

// judgeMasters reports whether the sentinels agree about the master.
func (s *survey) judgeMasters(masters map[string][]string) {
	switch named := slices.Sorted(maps.Keys(masters)); len(named) {
	case 0:
		s.found(driver.Warn, "sentinels", "", "none answers: a master that fails is not replaced, or we do not hear of it")
	case 1:
		s.found(driver.OK, "sentinels", "", "%d of %d name the master %s", len(masters[named[0]]), len(s.way.Sentinels), named[0])
	default:
		var votes []string
		for _, master := range named {
			votes = append(votes, master+" by "+strings.Join(masters[master], " and "))
		}
		s.found(driver.Warn, "sentinels", "",
			"they disagree about the master: %s: two servers may grant the same lock: see why (a failover may be under way)", strings.Join(votes, ", "))
	}
}

// askSentinel returns the address of the master that a sentinel names. quorum says why the
// sentinels could not replace the master, if so.
func (s *survey) askSentinel(ctx context.Context, host string) (master string, quorum, err error) {
	client, err := s.dial(ctx, host, true)
	if err != nil {
		return "", nil, err
	}
	defer client.Close()
	reply, err := s.tell(ctx, client, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.way.Master)
	if err != nil {
		return "", nil, err
	}
	var ip, port string
	if !form.Read(reply, &ip, &port) {
		return "", nil, fmt.Errorf("it knows no master %q", s.way.Master)
	}
	master = net.JoinHostPort(ip, port)
	_, quorum = s.tell(ctx, client, "SENTINEL", "CKQUORUM", s.way.Master)
	return master, quorum, nil
}

// lookAtCluster asks the first node that replies for the state of the cluster.
func (s *survey) lookAtCluster(ctx context.Context, servers []*server) {
	if s.store.Conn().Mode() != rediscore.InCluster {
		return
	}
	for _, server := range servers {
		if server.err != nil {
			continue
		}
		state, err := s.tell(ctx, server.client, "CLUSTER", "INFO")
		if err == nil {
			s.judgeSlots(parseInfo(fmt.Sprint(state)))
		} else {
			s.found(driver.Warn, "slots", "", "%s at the state of the cluster", hidden(err))
		}
		nodes, err := s.tell(ctx, server.client, "CLUSTER", "NODES")
		if err == nil {
			s.judgeNodes(parseNodes(fmt.Sprint(nodes)))
		} else {
			s.found(driver.Warn, "masters", "", "%s at the nodes of the cluster", hidden(err))
		}
		return
	}
}

// judgeSlots judges the reply to CLUSTER INFO.
func (s *survey) judgeSlots(state info) {
	well, suspect := state.number("cluster_slots_ok"), state.number("cluster_slots_pfail")
	switch {
	case state["cluster_state"] == "ok" && well == keys.Slots:
		s.found(driver.OK, "slots", "", "all %d are served", keys.Slots)
	case state["cluster_state"] == "ok" && well+suspect == keys.Slots:
		s.found(driver.Warn, "slots", "", "%d of %d are of a master that may have failed: see which", suspect, keys.Slots)
	default:
		s.failed("slots", "", fmt.Errorf("%w: %d of %d are served, state %q: names of the others cannot be locked: assign them to masters that run",
			driver.ErrUnavailable, well, keys.Slots, state["cluster_state"]))
	}
}

// parseNodes parses the reply to CLUSTER NODES. It returns the number of healthy replicas of each
// master with slots, by the master's address.
func parseNodes(text string) map[string]int {
	masters, replicas := map[string]string{}, map[string]int{} // by ID
	for line := range strings.Lines(verbatim(text)) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		flags := strings.Split(f[2], ",")
		addr, _, _ := strings.Cut(f[1], "@")
		switch well := f[7] == "connected" && !slices.Contains(flags, "fail") && !slices.Contains(flags, "fail?"); {
		case slices.Contains(flags, "master") && len(f) > 8:
			masters[f[0]] = addr
		case slices.Contains(flags, "slave") && well:
			replicas[f[3]]++
		}
	}
	counts := map[string]int{}
	for id, addr := range masters {
		counts[addr] = replicas[id]
	}
	return counts
}

// judgeNodes judges the result of parseNodes.
func (s *survey) judgeNodes(replicas map[string]int) {
	var alone []string
	for _, addr := range slices.Sorted(maps.Keys(replicas)) {
		if replicas[addr] == 0 {
			alone = append(alone, addr)
		}
	}
	if len(alone) > 0 {
		s.found(driver.Warn, "masters", "", "%s without a replica: if it fails, its names cannot be locked until it is back: add one",
			strings.Join(alone, ", "))
		return
	}
	s.found(driver.OK, "masters", "", "%d, each with a replica", len(replicas))
}
