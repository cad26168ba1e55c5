package main

import (
	"net"
	"testing"
)

// TestWardenStartsBesideTheStore checks that the warden starts while the store is being opened, and
// ends if holdfast is killed meanwhile.
func TestWardenStartsBesideTheStore(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	p := start(t, "redis://"+silent.Addr().String(), "run", "job", "--", "true")
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // until then the store is being opened
	warden := wardenOf(t, p.cmd.Process.Pid)
	if warden == 0 {
		t.Fatal("holdfast has ended")
	}
	kill(t, p.cmd.Process.Pid)
	eventually(t, "the warden has ended", func() bool { return !alive(t, warden) })
}
