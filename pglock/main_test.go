package pglock

import (
	"testing"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

func TestMain(m *testing.M) { drivertest.ExitWithoutLeaks(m, []string{"/holdfast/", "jackc/"}) }
