package serve

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

// DefaultAddress is where a server listens by default.
const DefaultAddress = "127.0.0.1:7420"

// An Address is where to listen.
type Address struct {
	network, address string
}

// ParseAddress reads host:port, or unix:// and a path. A host is looked up once: what
// is checked is what is listened on.
func ParseAddress(text string) (Address, error) {
	if path, isPath := strings.CutPrefix(text, "unix://"); isPath {
		if !filepath.IsAbs(path) {
			return Address{}, fmt.Errorf("%q: want unix:// and an absolute path: three slashes", text)
		}
		return Address{"unix", path}, nil
	}
	if strings.Contains(text, "://") {
		return Address{}, fmt.Errorf("%q: want host:port or unix:///path", text)
	}
	addr, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return Address{}, fmt.Errorf("%q: want host:port or unix:///path: %w", text, err)
	}
	return Address{"tcp", addr.String()}, nil
}

func (a Address) String() string { return a.address }

// Public reports whether other hosts can reach the address.
func (a Address) Public() bool {
	addr, err := net.ResolveTCPAddr("tcp", a.address)
	return a.network != "unix" && (err != nil || IsPublic(addr))
}

// IsPublic reports whether other hosts can reach what listens at addr: whatever is neither
// a socket of this host nor a loopback address.
func IsPublic(addr net.Addr) bool {
	switch a := addr.(type) {
	case *net.UnixAddr:
		return false
	case *net.TCPAddr:
		return !a.IP.IsLoopback() // nil, which is every address, is none
	}
	return true
}

// URL returns where l is, as a client names it. tls: a certificate is shown at addresses.
func URL(l net.Listener, tls bool) string {
	switch {
	case l.Addr().Network() == "unix":
		return "http+unix://" + l.Addr().String()
	case tls:
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}
