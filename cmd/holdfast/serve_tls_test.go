//go:build unix

package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// A keyPair is the files of a self-signed certificate and its key.
type keyPair struct{ cert, key string }

// make writes a certificate with a name, and its key, into the files.
func (k keyPair) make(t *testing.T, name string) {
	t.Helper()
	cert, key := testsvc.SelfSigned(t, name)
	for file, text := range map[string][]byte{k.cert: cert, k.key: key} {
		if err := os.WriteFile(file+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
}

func newKeyPair(t *testing.T, name string) keyPair {
	t.Helper()
	dir := t.TempDir()
	k := keyPair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	k.make(t, name)
	return k
}

// shownBy returns the name in the certificate of a server.
func shownBy(t *testing.T, url string, version uint16) (name string, err error) {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version}} //nolint:gosec // it looks what the server takes
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// TestServeTLS checks that a server speaks TLS 1.2 and later at addresses, with HTTP/2 and
// HTTP/1.1, and plain HTTP at a socket. It uses a new certificate soon, or at once after HUP,
// unless the certificate is unusable.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	pair, socket := newKeyPair(t, "first"), filepath.Join(t.TempDir(), "s")
	s := serve(t, sqlite(t), "--tls-cert", pair.cert, "--tls-key", pair.key, "--listen", "127.0.0.1:0", "--listen", "unix://"+socket)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(read(t, pair.cert)))
	for proto, h2 := range map[string]bool{"HTTP/2.0": true, "HTTP/1.1": false} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: h2, DisableKeepAlives: true}}
		resp, err := client.Get(s.urls[0] + "/readyz") //nolint:noctx // a client of a test
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Proto != proto {
			t.Errorf("%s %s, want %s", resp.Proto, resp.Status, proto)
		}
	}
	if status, _ := get(t, overSocket(socket), "http://holdfast/readyz"); status != 200 {
		t.Errorf("at the socket: %d", status)
	}
	if _, err := shownBy(t, s.urls[0], tls.VersionTLS11); err == nil {
		t.Error("it takes TLS 1.1")
	}

	shows := func(want string) func() bool {
		return func() bool { name, err := shownBy(t, s.urls[0], tls.VersionTLS13); return err == nil && name == want }
	}
	pair.make(t, "second")
	eventually(t, "the second certificate is shown", shows("second"))
	write(t, pair.key, "no key")
	s.signal(syscall.SIGHUP)
	s.awaitStderr("not reloaded")
	if !shows("second")() {
		t.Error("a certificate without its key took the place of one")
	}
	pair.make(t, "third")
	s.signal(syscall.SIGHUP)
	eventually(t, "the third certificate is shown", shows("third"))
	if _, text := get(t, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, s.urls[0]+"/metrics"); !strings.Contains(text, "holdfast_tls_certificate_expiry_timestamp_seconds ") { //nolint:gosec // a test
		t.Errorf("no metric says when the certificate ends:\n%s", text)
	}
}

// TestServePlainProtocols checks that a server without TLS speaks HTTP/1.1, and HTTP/2 with clients
// that begin with it.
func TestServePlainProtocols(t *testing.T) {
	t.Parallel()
	s := serve(t, sqlite(t))
	for proto, h2 := range map[string]bool{"HTTP/2.0": true, "HTTP/1.1": false} {
		var protocols http.Protocols
		protocols.SetHTTP1(!h2)
		protocols.SetUnencryptedHTTP2(h2)
		client := &http.Client{Transport: &http.Transport{Protocols: &protocols, DisableKeepAlives: true}}
		resp, err := client.Get(s.urls[0] + "/readyz") //nolint:noctx // a client of a test
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Proto != proto {
			t.Errorf("%s %s, want %s", resp.Proto, resp.Status, proto)
		}
	}
}

// TestServeWithoutACertificate checks that a server without a usable certificate does not start.
func TestServeWithoutACertificate(t *testing.T) {
	t.Parallel()
	pair := newKeyPair(t, "any")
	for _, flags := range [][]string{
		{"--tls-cert", pair.cert + ".none", "--tls-key", pair.key},
		{"--tls-cert", pair.cert, "--tls-key", pair.cert},
	} {
		wantRun(t, 78, sqlite(t), append([]string{"serve"}, flags...)...)
	}
	wantRun(t, 64, sqlite(t), "serve", "--tls-cert", pair.cert)
}

// TestServeSecretFile checks that a secret is refused, and not shown, if it is too short or all
// users may read it.
func TestServeSecretFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, "tooshort-xyzzy\n")
	if stderr := wantRun(t, 78, sqlite(t), "serve", "--secret-file", file); strings.Contains(stderr, "xyzzy") || !strings.Contains(stderr, "14 bytes") {
		t.Errorf("%s", stderr)
	}
	write(t, file, strings.Repeat("x", 32))
	serve(t, sqlite(t), "--secret-file", file)
	if err := os.Chmod(file, 0o604); err != nil { //nolint:gosec // it is what is refused
		t.Fatal(err)
	}
	if stderr := wantRun(t, 78, sqlite(t), "serve", "--secret-file", file); !strings.Contains(stderr, "chmod o=") {
		t.Errorf("%s", stderr)
	}
}

// TestServeAccessLog checks that each request is logged, without names.
func TestServeAccessLog(t *testing.T) {
	t.Parallel()
	s := serve(t, sqlite(t), "--log", "requests")
	s.get("/v1/nowhere/xyzzy?prefix=xyzzy")
	s.awaitStderr(`"msg":"request","route":"none","status":404`)
	if log := read(t, s.stderr); strings.Contains(log, "xyzzy") {
		t.Errorf("a path is in the log:\n%s", log)
	}
}
