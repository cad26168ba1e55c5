//go:build unix

package keeper

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// Command is the argument with which this program starts itself as a keeper. With it, the program
// must call Main.
const Command = "__keeper"

// An Order names the lease to keep. It is sent through a pipe, because the URL of the store may
// contain a password.
type Order struct {
	Store  store.Choice
	Handle holdfast.Handle // of the lease
	Name   string          // of its lock
	PID    int             // of the script
	Adopt  holdfast.AdoptOptions
	Once   *Once // of do-once work; nil for a lock
}

// started is the reply of a keeper to its order: its socket, or an error.
type started struct {
	Socket string
	Status int
	Error  string
}

// A Keeper is the starter's view of a keeper that it has started.
type Keeper struct {
	Socket string // where it listens
	orders *os.File
}

// startTime bounds how long a keeper may take to adopt the lease. The starter renews the lease
// meanwhile.
const startTime = 30 * time.Second

// Start starts a keeper and returns when it has adopted the lease. After an error, which has a
// status, no keeper is left.
func Start(o Order) (*Keeper, error) {
	orders, reports, err := launch(o)
	if err != nil {
		return nil, exit.Errorf(exit.Unavailable, "start a keeper: %w", err)
	}
	defer reports.Close()
	_ = reports.SetReadDeadline(time.Now().Add(startTime)) // pipes have deadlines
	var a started
	err = exchange(orders, reports, o, &a)
	switch {
	case err != nil:
		err = exit.Errorf(exit.Unavailable, "start a keeper: it has ended, or does not answer: %w", err)
	case a.Status != exit.OK:
		err = exit.With(a.Status, errors.New(a.Error))
	}
	if err != nil {
		_ = orders.Close()
		return nil, err
	}
	return &Keeper{Socket: a.Socket, orders: orders}, nil
}

// commit tells a keeper that the script has its lease.
const commit = "commit\n"

// Commit leaves the lease to the keeper.
func (k *Keeper) Commit() error {
	_, err := io.WriteString(k.orders, commit)
	return errors.Join(err, k.orders.Close())
}

// Cancel makes the keeper release the lease and end.
func (k *Keeper) Cancel() { _ = k.orders.Close() }

// launch starts the process in a session of its own, so that it gets no signals of the terminal
// or of the starter's group. It inherits none of the starter's standard files, because other
// processes may wait until they are closed.
func launch(o Order) (orders, reports *os.File, err error) {
	if len(os.Args) > 1 && os.Args[1] == Command { // each would start another, without end
		return nil, nil, errors.New("this process was started as a keeper")
	}
	self, err := supervise.Executable()
	if err != nil {
		return nil, nil, err
	}
	ordersEnd, orders, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer ordersEnd.Close()
	reports, reportsEnd, err := os.Pipe()
	if err != nil {
		_ = orders.Close()
		return nil, nil, err
	}
	defer reportsEnd.Close()
	cmd := exec.Command(self)
	cmd.Args = []string{"holdfast", Command, strconv.Itoa(o.PID), o.Name} // for those who look at ps
	cmd.ExtraFiles = []*os.File{ordersEnd, reportsEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_, _ = orders.Close(), reports.Close()
		return nil, nil, err
	}
	return orders, reports, cmd.Process.Release()
}
