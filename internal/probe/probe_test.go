package probe

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func TestLimits(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what string
		f    driver.Finding
		want driver.Level
	}{
		{"trip", Trip("request", 50*ms, time.Second, "", ""), driver.OK},
		{"trip", Trip("request", 51*ms, time.Second, "", ""), driver.Warn},
		{"clock", Clock(105*ms, 5*ms), driver.OK},
		{"clock", Clock(106*ms, 5*ms), driver.Warn},
		{"clock behind", Clock(-106*ms, 5*ms), driver.Warn},
	} {
		if c.f.Level != c.want {
			t.Errorf("%s: %s is %s, want %s", c.what, c.f.Text, c.f.Level, c.want)
		}
	}
}
