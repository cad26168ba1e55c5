package show

import (
	"errors"
	"os"
)

// A Terminal does not exist here.
type Terminal struct{ fd int }

func (*Terminal) foreground() (int, error)  { return 0, errors.ErrUnsupported }
func (*Terminal) size() (columns, rows int) { return 0, 0 }

func (*Terminal) Ours() bool               { return false }
func (*Terminal) Catch(chan<- os.Signal)   {}
func (*Terminal) Release(chan<- os.Signal) {}
func (*Terminal) IsStop(os.Signal) bool    { return false }
func (*Terminal) Stop(chan<- os.Signal)    {}

func (*Terminal) BeforeEnd(func()) (stop func()) { return func() {} }
