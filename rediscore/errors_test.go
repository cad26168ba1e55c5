package rediscore

import (
	"fmt"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// TestServerErrors covers error texts that no server of these tests returns.
func TestServerErrors(t *testing.T) {
	for text, want := range map[string]error{
		"LOADING Redis is loading the dataset in memory":                                                                 driver.ErrUnavailable,
		"CLUSTERDOWN Hash slot not served":                                                                               driver.ErrUnavailable,
		"MASTERDOWN Link with MASTER is down":                                                                            driver.ErrUnavailable,
		"MOVED 3999 127.0.0.1:6381":                                                                                      driver.ErrUnavailable,
		"BUSY Redis is busy running a script.":                                                                           driver.ErrUnavailable,
		"NOREPLICAS Not enough good replicas to write.":                                                                  driver.ErrUnavailable,
		"MISCONF Redis is configured to save RDB snapshots":                                                              driver.ErrUnavailable,
		"ERR max number of clients reached":                                                                              driver.ErrUnavailable,
		"-READONLY You can't write against a read only replica.":                                                         driver.ErrUnavailable,
		"ERR Error running script (call to f_1): @user_script:3: -READONLY You can't write":                              driver.ErrUnavailable,
		"ERR Error running script (call to f_1): @user_script: 3: WRONGTYPE Operation":                                   driver.ErrKindMismatch,
		"@user_script: 5: -OOM command not allowed when used memory > 'maxmemory'.":                                      driver.ErrUnavailable,
		"ERR The user executing the script can't run this command or subcommand script: 1, on @user_script:3.":           driver.ErrPermission,
		"ERR ACL failure in script: User app has no permissions to run the 'time' command script: 1, on @user_script:9.": driver.ErrPermission,
		"NOPERM ACL failure in script: User app has no permissions":                                                      driver.ErrPermission,
		"DENIED Redis is running in protected mode":                                                                      driver.ErrPermission,
		"ERR invalid password":                                                                                           driver.ErrPermission,
		"LAYOUT 2":                                                                                                       driver.ErrKindMismatch,
		"ERR unknown command 'EVALSHA'":                                                                                  nil,
		"ERR Error running script (call to f_1): @user_script:3: arithmetic on a nil value":                              nil,
		"UNBLOCKED": nil,
		"":          nil,
	} {
		err := ReplyError(text)
		drivertest.WantIs(t, text, err, want)
		if err == nil {
			t.Errorf("%q is not an error", text)
		}
	}
}

// TestUnknownStaysUnknown checks that the outcome of a request stays unknown if its repeat fails.
func TestUnknownStaysUnknown(t *testing.T) {
	silent := fmt.Errorf("no answer: %w", ErrGivenUp)
	for _, repeat := range []error{driver.ErrLost, driver.ErrUnavailable, silent} {
		calls := 0
		err := again(t.Context(), func() error {
			if calls++; calls == 1 {
				return silent
			}
			return repeat
		})
		if calls != 2 || err != silent {
			t.Errorf("%d calls, the second says %v: %v", calls, repeat, err)
		}
	}
}
