package redislock

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestExtendAcrossSlots checks a batch with names in many slots, on a cluster that refuses a script
// over two of them.
func TestExtendAcrossSlots(t *testing.T) {
	server := cluster(t)
	client := clusterClient(t, server)
	e := engineOn(t, client, nil)
	defer func() { _ = e.Close() }()
	var batch []driver.ExtendRequest
	for i := range 100 {
		req := drivertest.Request(fmt.Sprint("n", i), time.Minute)
		if i%10 == 9 {
			req.LeaseID = lockinfo.NewLeaseID()
		} else {
			drivertest.Granted(t, e, req)
		}
		batch = append(batch, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: time.Hour})
	}
	for i, err := range e.Extend(t.Context(), batch) {
		if i%10 == 9 {
			wantIs(t, "extend of no lease", err, driver.ErrLost)
		} else if err != nil {
			t.Errorf("extend %d: %v", i, err)
		}
	}
	// Without a cluster client, the server's error is returned with advice.
	single, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	wrong := engineOn(t, single, nil)
	defer func() { _ = wrong.Close() }()
	wantIs(t, "extend", wrong.Extend(t.Context(), batch)[0], driver.ErrUnavailable)
}

// TestRefreshAcrossSlots checks the same for places.
func TestRefreshAcrossSlots(t *testing.T) {
	server := cluster(t)
	e := engineOn(t, clusterClient(t, server), nil)
	defer func() { _ = e.Close() }()
	var batch []driver.RefreshRequest
	for i := range 50 {
		holder := drivertest.Request(fmt.Sprint("n", i%40), time.Minute)
		if i < 40 {
			drivertest.Granted(t, e, holder)
		}
		waiter := queued(t, e, drivertest.Request(holder.Name, time.Minute), time.Minute, 1+i/40)
		batch = append(batch, driver.RefreshRequest{Name: waiter.Name, LeaseID: waiter.LeaseID, WaiterTTL: time.Minute})
	}
	batch = append(batch, driver.RefreshRequest{Name: "n7", LeaseID: lockinfo.NewLeaseID(), WaiterTTL: time.Minute})
	for i, reply := range e.Refresh(t.Context(), batch) {
		switch {
		case i == 50:
			wantIs(t, "refresh of no place", reply.Err, driver.ErrLost)
		case reply.Err != nil || reply.Outcome != driver.Held || reply.Place != 1+i/40:
			t.Errorf("refresh %d: %+v", i, reply)
		}
	}
}

// TestAcquireAllInSlots checks that several locks in one step need one slot.
func TestAcquireAllInSlots(t *testing.T) {
	server := cluster(t)
	admin := plain(t, server)
	e := engineOn(t, clusterClient(t, server), nil)
	defer func() { _ = e.Close() }()
	all := func(names ...string) (driver.AllReply, error) {
		var reqs []driver.AcquireRequest
		for _, name := range names {
			reqs = append(reqs, drivertest.Request(name, time.Minute))
		}
		return e.AcquireAll(t.Context(), reqs)
	}
	before := dump(t, admin)
	_, err := all("a", "b")
	wantIs(t, "two slots", err, driver.ErrUnsupported)
	if after := dump(t, admin); !maps.Equal(before, after) {
		t.Errorf("the store was %v and is %v", before, after)
	}
	reply, err := all("{x}a", "{x}b", "x")
	if err != nil || reply.Outcome != driver.Granted || len(reply.Tokens) != 3 {
		t.Errorf("one slot: %+v, %v", reply, err)
	}
}
