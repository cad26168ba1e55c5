package redislock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// pass makes all data in the store older by d: all ends, tokens and clocks that scripts have
// recorded.
func pass(t testing.TB, admin rueidis.Client, d time.Duration) {
	t.Helper()
	do(t, admin, "EVAL", `
		local ms = tonumber(ARGV[1])
		local function older(value)
			local function less(by)
				return function(n) return string.format('%.0f', tonumber(n) - by) end
			end
			value = string.gsub(value, '%f[%w]' .. string.rep('%d', 16) .. '%f[%W]', less(ms * 1000))
			return (string.gsub(value, '%f[%w]' .. string.rep('%d', 13) .. '%f[%W]', less(ms)))
		end
		for _, key in ipairs(redis.call('KEYS', '*')) do
			local left, kind = redis.call('PTTL', key), redis.call('TYPE', key).ok
			if left >= 0 and left <= ms then
				redis.call('DEL', key)
			elseif kind == 'string' then
				redis.call('SET', key, older(redis.call('GET', key)), 'KEEPTTL')
			elseif kind == 'hash' then
				local all = redis.call('HGETALL', key)
				for i = 1, #all, 2 do
					redis.call('HSET', key, all[i], older(all[i + 1]))
				end
			elseif kind == 'zset' then
				local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
				for i = 1, #all, 2 do
					redis.call('ZINCRBY', key, tonumber(all[i + 1]) > 1e14 and -ms * 1000 or -ms, all[i])
				end
			end
			if left > ms then
				redis.call('PEXPIRE', key, left - ms)
			end
		end`, "0", strconv.FormatInt(d.Milliseconds(), 10))
}

// An old is a lease that lasts for ttl after each renewal.
type old struct {
	*testing.T
	e     *Engine
	m     driver.Member
	admin rueidis.Client
	ttl   time.Duration
	req   driver.AcquireRequest
}

func (o *old) granted(req driver.AcquireRequest) {
	o.Helper()
	o.req = req
	drivertest.Granted(o, o.e, req)
}

func (o *old) extend() {
	o.Helper()
	if err := o.e.Extend(o.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: o.req.LeaseID, TTL: o.ttl}})[0]; err != nil {
		o.Fatal(err)
	}
}

func (o *old) keep() {
	o.Helper()
	if err := o.e.Release(o.Context(), driver.ReleaseRequest{Name: "t", LeaseID: o.req.LeaseID, KeepFor: o.ttl}); err != nil {
		o.Fatal(err)
	}
}

func (o *old) renew() {
	o.Helper()
	if reply := o.m.Renew(o.Context(), []driver.RenewRequest{{Name: "t", LeaseID: o.req.LeaseID, TTL: o.ttl}})[0]; reply.Err != nil {
		o.Fatal(reply.Err)
	}
}

// live keeps the lease for three times as long as a token is remembered, or, if keep is nil, for
// its TTL.
func (o *old) live(memory time.Duration, keep func(o *old)) {
	o.Helper()
	const slack = 20 * time.Second // the most that a step may take
	var age time.Duration
	for left := o.ttl; age < 3*memory; left = o.ttl {
		for left > slack { // the last check is shortly before the lease ends
			step := max(left/3+rand.N(left/3), min(left-slack, time.Minute))
			pass(o, o.admin, step)
			left, age = left-step, age+step
			o.listed(age)
		}
		if keep == nil {
			break
		}
		keep(o)
		o.listed(age)
	}
	// The token is forgotten in the end.
	most := max(memory, o.ttl+memory/2) + driver.MaxTokenLead
	if left := number(o, o.admin, "PTTL", keyspace{}.fence("t")); left < 0 || left > most.Milliseconds() {
		o.Errorf("the last token is remembered for %d ms, want %s at most", left, most)
	}
}

// listed fails the test unless the list has the lock and no other.
func (o *old) listed(age time.Duration) {
	o.Helper()
	var all []string
	for lock, err := range o.e.List(o.Context(), "") {
		if err != nil {
			o.Fatal(err)
		}
		all = append(all, lock.Name)
	}
	if fmt.Sprint(all) != "[t]" {
		o.Fatalf("after %s: listed are %q, want the lock", age, all)
	}
}

// TestListShowsOldLocks checks that a list finds a lock by its last token, which is remembered
// while the lock is held or kept closed, however it was granted or extended. After that it is
// forgotten (INVARIANT I11).
func TestListShowsOldLocks(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	exclusive := func(o *old) { o.granted(drivertest.Request("t", o.ttl)) }
	together := func(o *old) { o.granted(shared("t", o.ttl)) }
	again := func(o *old) {
		o.Helper()
		o.req.TTL = o.ttl
		drivertest.Granted(o, o.e, o.req)
	}
	// Others hold the lock as well, for a shorter time.
	others := func(o *old) {
		o.Helper()
		other := shared("t", time.Second)
		drivertest.Granted(o, o.e, other)
		drivertest.Release(o, o.e, other)
	}
	cases := []struct {
		what        string
		begin, keep func(o *old)
	}{
		{"exclusive", exclusive, (*old).extend},
		{"repeated", exclusive, again},
		{"from short to long", func(o *old) { o.granted(drivertest.Request("t", time.Second)); o.extend() }, (*old).extend},
		{"ahead of the clock", func(o *old) {
			req := drivertest.Request("t", o.ttl)
			req.MinToken = uint64(time.Now().Add(driver.MaxTokenLead / 2).UnixMicro())
			o.granted(req)
		}, (*old).extend},
		{"once", func(o *old) {
			req := drivertest.Request("t", o.ttl)
			req.Once = true
			o.granted(req)
		}, (*old).extend},
		{"shared", together, (*old).extend},
		{"shared with others", together, func(o *old) { o.extend(); others(o) }},
		{"permits", func(o *old) { o.granted(permits("t", 2, o.ttl)) }, again},
		{"all", func(o *old) {
			o.req = drivertest.Request("t", o.ttl)
			if reply, err := o.e.AcquireAll(o.Context(), []driver.AcquireRequest{o.req}); err != nil || reply.Outcome != driver.Granted {
				o.Fatalf("%+v, %v", reply, err)
			}
		}, (*old).extend},
		{"handed over", func(o *old) {
			exclusive(o)
			first := queued(o, o.e, drivertest.Request("t", time.Minute), o.ttl, 1)
			drivertest.Release(o, o.e, o.req)
			o.req = first
		}, (*old).extend},
		{"handed over shared", func(o *old) {
			exclusive(o)
			first := queued(o, o.e, shared("t", time.Minute), o.ttl, 1)
			queued(o, o.e, shared("t", time.Minute), time.Second, 2)
			drivertest.Release(o, o.e, o.req)
			o.req = first
		}, (*old).extend},
		{"downgraded", func(o *old) {
			exclusive(o)
			queued(o, o.e, shared("t", time.Minute), time.Second, 1)
			if err := o.e.Downgrade(o.Context(), driver.DowngradeRequest{Name: "t", LeaseID: o.req.LeaseID}); err != nil {
				o.Fatal(err)
			}
		}, (*old).extend},
		{"kept closed", func(o *old) { o.granted(drivertest.Request("t", time.Second)); o.keep() }, nil},
		{"kept closed, and shared", func(o *old) { together(o); o.keep(); others(o) }, nil},
		{"kept closed, and handed over", func(o *old) {
			together(o)
			queued(o, o.e, drivertest.Request("t", time.Minute), time.Minute, 1)
			queued(o, o.e, shared("t", time.Minute), time.Minute, 2)
			o.keep()
		}, nil},
		{"of a member", func(o *old) {
			req := proposal("t")
			req.TTL = o.ttl
			votes(o, o.m, req, driver.VoteAccepted)
			o.req.LeaseID = req.LeaseID
		}, (*old).renew},
		{"of a member, for longer", func(o *old) {
			req := proposal("t")
			votes(o, o.m, req, driver.VoteAccepted)
			o.req.LeaseID = req.LeaseID
			o.renew()
			// Another engine has proposed a greater token for its lease ID.
			late := driver.WithdrawRequest{Name: "t", LeaseID: req.LeaseID, Proposer: driver.NewProposer(), Token: req.Token + 1000, Lead: time.Minute}
			if _, err := o.m.Withdraw(o.Context(), late); err != nil && !errors.Is(err, driver.ErrLost) {
				o.Fatal(err)
			}
		}, (*old).renew},
		{"of a member, kept closed", func(o *old) {
			req := proposal("t")
			votes(o, o.m, req, driver.VoteAccepted)
			if _, err := o.m.Withdraw(o.Context(), driver.WithdrawRequest{Name: "t", LeaseID: req.LeaseID, Released: true, Token: req.Token, KeepFor: o.ttl}); err != nil {
				o.Fatal(err)
			}
		}, nil},
	}
	m := admitted(t, server.URL)
	for params, memory := range map[string]time.Duration{"?token_memory=1h": time.Hour, "?token_memory=1h&history=1": time.Hour, "": driver.TokenMemory} {
		e := open(t, server.URL+params)
		for _, c := range cases {
			if strings.HasPrefix(c.what, "of a member") != (memory == driver.TokenMemory) {
				continue // members remember tokens for driver.TokenMemory
			}
			for _, ttl := range []time.Duration{memory / 30, memory / 5, memory / 2, memory/2 + time.Second, memory * 3 / 2, memory * 20} {
				t.Run(fmt.Sprintf("%s%s for %s", c.what, params, ttl), func(t *testing.T) {
					do(t, admin, "EVAL", "for _, k in ipairs(redis.call('KEYS', '*')) do if not string.find(k, 'marker') then redis.call('DEL', k) end end", "0")
					o := &old{T: t, e: e, m: m, admin: admin, ttl: ttl}
					c.begin(o)
					o.live(memory, c.keep)
				})
			}
		}
	}
}
