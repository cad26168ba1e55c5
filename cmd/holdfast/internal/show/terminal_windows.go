package show

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// A Terminal has only a size here.
type Terminal struct{ fd int }

func (*Terminal) foreground() (int, error) { return 0, errors.ErrUnsupported }

func (t *Terminal) size() (columns, rows int, ok bool) {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(t.fd), &info) != nil {
		return 0, 0, false
	}
	return int(info.Size.X), int(info.Window.Bottom-info.Window.Top) + 1, true
}

func (*Terminal) Ours() bool               { return false }
func (*Terminal) Catch(chan<- os.Signal)   {}
func (*Terminal) Release(chan<- os.Signal) {}
func (*Terminal) IsStop(os.Signal) bool    { return false }
func (*Terminal) Stop(chan<- os.Signal)    {}
