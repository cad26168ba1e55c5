//go:build linux

package peer_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/peer"
)

// TestHungUp checks that HungUp reports a closed connection, over TCP even with unread data.
func TestHungUp(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		for _, unread := range []string{"", "a byte or more"} {
			client, server := pair(t, network, address)
			if _, err := client.Write([]byte(unread)); err != nil {
				t.Fatal(err)
			}
			if peer.HungUp(server) {
				t.Errorf("%s: the client has hung up, before it did", network)
			}
			_ = client.Close()
			if !peer.HungUp(server) && (network == "tcp" || unread == "") {
				t.Errorf("%s, with %q unread: the client has not hung up", network, unread)
			}
		}
	}
	near, _ := net.Pipe()
	if peer.HungUp(near) {
		t.Error("something is known of a pipe")
	}
}
