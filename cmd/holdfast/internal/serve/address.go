package serve

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

// DefaultAddress is where a server listens by default.
const DefaultAddress = "127.0.0.1:7420"

// ParseAddress reads host:port, or unix:// and a path. A host is looked up once: what
// is checked is what is listened on.
func ParseAddress(text string) (net.Addr, error) {
	if path, isPath := strings.CutPrefix(text, "unix://"); isPath {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%q: want unix:// and an absolute path: three slashes", text)
		}
		return &net.UnixAddr{Name: path, Net: "unix"}, nil
	}
	if strings.Contains(text, "://") {
		return nil, fmt.Errorf("%q: want host:port or unix:///path", text)
	}
	addr, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return nil, fmt.Errorf("%q: want host:port or unix:///path: %w", text, err)
	}
	return addr, nil
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
