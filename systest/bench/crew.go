package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
)

// crewRole is the argument that makes this program a crew: a process with one
// client, which does the job that follows. It ends with its standard input.
const crewRole = "crew"

// A crewJob is what a crew is told.
type crewJob struct {
	Peer, Addr string
	TTL        time.Duration
	Shift      shift
	Hold       bool // take Shift.Name, and hold it until the end
}

// A crewResult is what a crew says at the end, and empty when it is ready.
type crewResult struct {
	Turns []int64
	CPU   time.Duration
}

// beCrew is the main function of a crew.
func beCrew(text string) error {
	var job crewJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	p, ok := peer.Named(job.Peer)
	if !ok {
		return fmt.Errorf("no peer %q", job.Peer)
	}
	ctx := context.Background()
	client, err := p.Open(ctx, job.Addr, job.TTL)
	if err != nil {
		return err
	}
	if job.Hold {
		if _, err := client.Try(ctx, job.Shift.Name); err != nil {
			return err
		}
	}
	out, in := json.NewEncoder(os.Stdout), bufio.NewReader(os.Stdin)
	if err := out.Encode(crewResult{}); err != nil {
		return err
	}
	if _, err := in.ReadString('\n'); err != nil {
		return nil // nobody wants it any more
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(1)
	}()
	before, err := ownCPU()
	if err != nil {
		return err
	}
	turns, _, err := job.Shift.do(ctx, client)
	if err != nil {
		return err
	}
	after, err := ownCPU()
	return errors.Join(err, out.Encode(crewResult{turns, after - before}))
}

// A crew is such a process.
type crew struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// startCrew returns a crew that is ready to begin.
func startCrew(ctx context.Context, job crewJob) (*crew, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	c := &crew{cmd: exec.CommandContext(ctx, os.Args[0], crewRole, string(text))}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(out)
	if _, err := c.next(); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// next reads what the crew says next.
func (c *crew) next() (r crewResult, err error) {
	if err := c.out.Decode(&r); err != nil {
		return r, fmt.Errorf("a crew ended: %w", err)
	}
	return r, nil
}

// kill ends the crew as a crash would.
func (c *crew) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// runCrews has n crews do the same job at the same time. It calls ready when all
// are, and before they begin.
func runCrews(ctx context.Context, n int, job crewJob, ready func() error) ([]crewResult, error) {
	var crews []*crew
	defer func() {
		for _, c := range crews {
			c.kill()
		}
	}()
	for range n {
		c, err := startCrew(ctx, job)
		if err != nil {
			return nil, err
		}
		crews = append(crews, c)
	}
	if err := ready(); err != nil {
		return nil, err
	}
	for _, c := range crews {
		if _, err := io.WriteString(c.in, "begin\n"); err != nil {
			return nil, err
		}
	}
	results := make([]crewResult, n)
	for i, c := range crews {
		var err error
		if results[i], err = c.next(); err != nil {
			return nil, err
		}
	}
	return results, nil
}
