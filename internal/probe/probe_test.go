package probe

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func TestRequest(t *testing.T) {
	for took, want := range map[time.Duration]driver.Level{50 * time.Millisecond: driver.OK, 51 * time.Millisecond: driver.Warn} {
		if f := request(took, time.Second); f.Level != want {
			t.Errorf("%s for a TTL of a second is %s, want %s", took, f.Level, want)
		}
	}
}
