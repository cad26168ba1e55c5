package memlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/quorumlock/membertest"
)

func TestMember(t *testing.T) {
	membertest.Run(t, membertest.Harness{
		Open:    func(testing.TB) driver.Member { return memlock.NewMember() },
		Engine:  func(_ testing.TB, m driver.Member) driver.Engine { return m.(*memlock.Member).Engine() },
		Restart: func(_ testing.TB, m driver.Member) { m.(*memlock.Member).Restart() },
		Unit:    time.Second,
		Bubble:  synctest.Test,
	})
}
