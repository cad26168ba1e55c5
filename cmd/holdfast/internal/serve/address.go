package serve

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

// DefaultAddress is where a server listens by default.
const DefaultAddress = "127.0.0.1:7420"

// ParseAddress parses host:port, or unix:// and a path. It resolves a host once, so that the
// address that the caller checks is the one that it listens on.
func ParseAddress(text string) (net.Addr, error) {
	if path, isPath := strings.CutPrefix(text, "unix://"); isPath {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%q: want unix:// and an absolute path: three slashes", text)
		}
		return &net.UnixAddr{Name: path, Net: "unix"}, nil
	}
	if text == "" || strings.Contains(text, "://") {
		return nil, fmt.Errorf("%q: want host:port or unix:///path", text)
	}
	addr, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return nil, fmt.Errorf("%q: want host:port or unix:///path: %w", text, err)
	}
	return addr, nil
}

// IsPublic reports whether other hosts can reach a listener at addr. They cannot if addr is a
// Unix socket or a loopback address.
func IsPublic(addr net.Addr) bool {
	switch a := addr.(type) {
	case *net.UnixAddr:
		return false
	case *net.TCPAddr:
		return !a.IP.IsLoopback() // nil means every address, and is not a loopback address
	}
	return true
}

// URL returns the URL at which clients reach l. tls says whether TCP listeners use TLS.
func URL(l net.Listener, tls bool) string {
	switch {
	case l.Addr().Network() == "unix":
		return "http+unix://" + l.Addr().String()
	case tls:
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}
