package member_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest/membertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/memlock/member"
)

func TestMember(t *testing.T) {
	membertest.Run(t, membertest.Harness{
		Open:    func(testing.TB) driver.Member { return member.New() },
		Engine:  func(_ testing.TB, m driver.Member) driver.Engine { return m.(*mem.Member).Engine() },
		Restart: func(_ testing.TB, m driver.Member) { m.(*mem.Member).Restart() },
		Unit:    time.Second,
		Bubble:  synctest.Test,
	})
}
