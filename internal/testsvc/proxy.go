//go:build unix

package testsvc

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Nginx starts nginx with the given server block, such as "location / { proxy_pass …; }". Other
// settings have their defaults, except that nginx runs as one process, as any user, and several
// times at once.
func Nginx(t testing.TB, server string) *Server {
	t.Helper()
	return Program(t, Need(t, "nginx", "nginx", "nginx"), "OS: ", func(addr, dir string) []string {
		file := writeConf(t, dir, fmt.Sprintf(nginxConf, dir, addr, server))
		return []string{"-c", file, "-p", dir, "-e", "stderr"}
	})
}

const nginxConf = `
daemon off;
pid %[1]s/pid;
error_log stderr notice;
master_process off;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s;
		%[3]s
	}
}
`

// HAProxy starts HAProxy with the defaults of Debian and one server; the text of server may
// include options. The mode is http or, for a relay of bytes, tcp.
func HAProxy(t testing.TB, mode, server string) *Server {
	t.Helper()
	s := Program(t, Need(t, "haproxy", "haproxy", "haproxy"), "polling mechanism", func(addr, dir string) []string {
		return []string{"-db", "-V", "-f", writeConf(t, dir, fmt.Sprintf(haproxyConf, mode, addr, server))}
	})
	await(t, "HAProxy listens", func() bool {
		conn, err := net.Dial("tcp", s.Addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return s
}

const haproxyConf = `
defaults
	mode %s
	timeout connect 5000
	timeout client 50000
	timeout server 50000
listen locks
	bind %s
	server one %s
`

func writeConf(t testing.TB, dir, text string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "conf")
	must(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

// ShutDown sends SIGTERM to the server, and returns when it has ended.
func (s *Server) ShutDown() {
	s.t.Helper()
	p := s.running()
	if err := syscall.Kill(p.pid, syscall.SIGTERM); err != nil {
		s.t.Fatalf("shut %s down: %v", s.program, err)
	}
	<-p.done
	s.proc = nil
}
