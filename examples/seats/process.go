//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// patience bounds each wait of the director on a loaded machine.
const patience = 30 * time.Second

// A process is a worker as the director sees it.
type process struct {
	name   string
	cmd    *exec.Cmd
	orders io.WriteCloser
	events chan event // closed when the process has ended
}

// startProcess starts this program again as a worker. The process is killed
// when ctx ends, and ends by itself when it is closed.
func startProcess(ctx context.Context, s setup) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: s.Worker, cmd: exec.CommandContext(ctx, program, workerArg), events: make(chan event, 16)}
	p.cmd.Stderr = os.Stderr
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	// The goroutine ends with the output of the process; close waits for it.
	go func() {
		defer close(p.events)
		for d := json.NewDecoder(out); ; {
			var e event
			if d.Decode(&e) != nil {
				return
			}
			p.events <- e
		}
	}()
	if err := p.send(order{Setup: &s}); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *process) send(o order) error { return json.NewEncoder(p.orders).Encode(o) }

// close ends the process, and waits for its end.
func (p *process) close() error {
	_ = p.orders.Close()
	_ = p.wake()
	for range p.events {
	}
	return p.cmd.Wait()
}

// stop stops the process, including its keep-alive. The process does not notice.
func (p *process) stop() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// wake continues a stopped process.
func (p *process) wake() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

var errLate = errors.New("no event in time")

// next returns the next event of the process, errLate if there is none within
// bound, and an error if the order failed or the process has ended.
func (p *process) next(ctx context.Context, bound time.Duration) (event, error) {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case e, ok := <-p.events:
		switch {
		case !ok:
			return event{}, fmt.Errorf("%s has ended", p.name)
		case e.Kind == failed:
			return event{}, fmt.Errorf("%s, seat %s: %s", p.name, e.Seat, e.Text)
		}
		return e, nil
	case <-timer.C:
		return event{}, fmt.Errorf("%s: %w", p.name, errLate)
	case <-ctx.Done():
		return event{}, context.Cause(ctx)
	}
}
