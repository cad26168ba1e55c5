package serve

import (
	"net"
	"testing"
)

// TestPublic checks that other hosts can reach every address but sockets and loopback addresses.
func TestPublic(t *testing.T) {
	for text, public := range map[string]bool{
		"127.0.0.1:7420": false, "127.1.2.3:0": false, "[::1]:7420": false, "unix:///run/s": false,
		":7420": true, "0.0.0.0:7420": true, "[::]:7420": true, "192.0.2.7:80": true, "[::ffff:192.0.2.7]:80": true,
	} {
		a, err := ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		if IsPublic(a) != public {
			t.Errorf("%s: public is %t", text, IsPublic(a))
		}
	}
	if !IsPublic(&net.IPAddr{IP: net.IPv4(127, 0, 0, 1)}) {
		t.Error("an address of a kind that nobody knows counts as this host's")
	}
}
