package stores

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/redislock/member"
)

// paramMaxTTL is the one parameter of a quorum's URL that is not for each of
// its members.
const paramMaxTTL = "max_ttl"

// openQuorum opens a store at quorum+redis://[user:password@]a,b,c[/db][?…]. It
// sends nothing.
func openQuorum(rawURL string) (*quorumlock.Engine, error) {
	urls, opts, err := parseQuorum(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w quorum URL: %w", driver.ErrInvalid, err)
	}
	var members []driver.Member
	for _, memberURL := range urls {
		m, err := member.Open(memberURL)
		if err != nil {
			return nil, err // the earlier members were not used: there is nothing to close
		}
		members = append(members, m)
	}
	return quorumlock.New(members, &opts)
}

// parseQuorum returns the URL of each member: rawURL with one host, and without the parameter
// of the quorum. Its errors quote no part of the URL that may be a misplaced password.
func parseQuorum(rawURL string) (urls []string, opts quorumlock.Options, err error) {
	opts.CloseMembers = true
	p, ok := storeurl.Split(rawURL)
	if !ok {
		return nil, opts, errors.New("want quorum+redis://host1:port,host2:port,host3:port")
	}
	hosts := strings.Split(p.Hosts, ",")
	if err := checkHosts(hosts, p.User); err != nil {
		return nil, opts, err
	}
	path, query, _ := strings.Cut(p.Rest, "?")
	params, malformed := url.ParseQuery(query)
	if opts.MaxTTL, err = takeMaxTTL(params); err != nil {
		return nil, opts, err
	}
	if slices.Contains(params["history"], "1") {
		return nil, opts, errors.New("history=1: a quorum keeps none: leave it out, or use one server, Sentinel or a cluster")
	}
	if malformed == nil { // else members refuse it
		query = params.Encode()
	}
	if query != "" {
		path += "?" + query
	}
	for _, host := range hosts {
		urls = append(urls, strings.TrimPrefix(p.Scheme, "quorum+")+"://"+p.User+host+path)
	}
	return urls, opts, nil
}

// checkHosts rejects hosts that cannot form a quorum.
func checkHosts(hosts []string, user string) error {
	seen := map[string]int{}
	for i, host := range hosts {
		u, err := url.Parse("redis://" + host)
		if err != nil || u.Hostname() == "" || u.User != nil {
			return errors.New("a host is malformed or missing; want host:port,host:port,host:port")
		}
		addr := net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), "6379"))
		if seen[addr] > 0 {
			return fmt.Errorf("the hosts %d and %d are the same: the members must be servers of their own", seen[addr], i+1)
		}
		seen[addr] = i + 1
	}
	n := len(hosts)
	switch {
	case n < 3 && strings.Count(user, "@") > 1:
		return errors.New("user and password are given once, in front of the first host: they are the same for all members")
	case n < 3:
		return fmt.Errorf("it names %d: a quorum takes at least 3 servers to survive the loss of one", n)
	case n%2 == 0:
		return fmt.Errorf("it names %d servers: an even number survives no more losses than %d: take one away or add one", n, n-1)
	}
	return nil
}

// takeMaxTTL takes the parameter max_ttl out of a URL's parameters.
func takeMaxTTL(params url.Values) (time.Duration, error) {
	given := params[paramMaxTTL]
	if len(given) == 0 {
		return 0, nil
	}
	delete(params, paramMaxTTL)
	maxTTL, err := time.ParseDuration(given[0])
	if err != nil || maxTTL <= 0 || len(given) > 1 {
		return 0, fmt.Errorf("%s: want one duration, such as 5m, the same in all clients", paramMaxTTL)
	}
	return maxTTL, nil
}
