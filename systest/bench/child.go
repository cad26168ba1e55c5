package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// A child is another process of this program. It writes a message of type M when it is ready, and
// after each line that it reads.
type child[M any] struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder

	said bytes.Buffer // standard error; read after the end of the process
}

// startChild starts a process in a role. Its first message is yet to be read.
func startChild[M any](ctx context.Context, role, arg string) (c *child[M], err error) {
	c = &child[M]{cmd: exec.CommandContext(ctx, os.Args[0], role, arg)}
	c.cmd.Stderr = &c.said
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(out)
	return c, c.cmd.Start()
}

// tell makes the process do its job once.
func (c *child[M]) tell() error {
	_, err := io.WriteString(c.in, "go\n")
	return err
}

// next reads the next message.
func (c *child[M]) next() (message M, err error) {
	if err := c.out.Decode(&message); err != nil {
		c.kill()
		return message, fmt.Errorf("a process of the benchmark ended: %w: %s", err, strings.TrimSpace(c.said.String()))
	}
	return message, nil
}

// ask writes a line and reads the reply.
func (c *child[M]) ask() (message M, err error) {
	if err := c.tell(); err != nil {
		return message, err
	}
	return c.next()
}

// kill ends the process as a crash would. It may be called twice.
func (c *child[M]) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
