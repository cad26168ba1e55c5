//go:build unix

package testsvc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TLSFiles are PEM files for a client: the authority that signed the server's certificate, and the
// client's own certificate and key.
type TLSFiles struct{ CA, Cert, Key string }

// RedisTLS starts a redis-server that accepts only TLS, and only the client with the returned
// certificate. Server and client have signed their certificates themselves, so that each is the
// authority for its own. The server's certificate is for 127.0.0.1 and for the name redis.test.
func RedisTLS(t testing.TB, extraArgs ...string) (*Server, TLSFiles) {
	t.Helper()
	dir := t.TempDir()
	serverCert, serverKey := selfSignedFiles(t, dir, "redis.test")
	cert, key := selfSignedFiles(t, dir, "client")
	s := redisServer(t, ready, func(s *Server) []string {
		_, port, _ := net.SplitHostPort(s.Addr)
		s.URL = "rediss://" + s.Addr
		return dataArgs(s, append([]string{
			"--port", "0", "--tls-port", port, "--tls-auth-clients", "yes",
			"--tls-cert-file", serverCert, "--tls-key-file", serverKey, "--tls-ca-cert-file", cert,
		}, extraArgs...))
	})
	return s, TLSFiles{CA: serverCert, Cert: cert, Key: key}
}

// selfSignedFiles writes what SelfSigned returns into files.
func selfSignedFiles(t testing.TB, dir, name string) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	certPEM, keyPEM := SelfSigned(t, name)
	must(t, os.WriteFile(cert, certPEM, 0o600))
	must(t, os.WriteFile(key, keyPEM, 0o600))
	return cert, key
}

// SelfSigned returns, in PEM, a certificate that signs itself, and its key. It is valid for a day,
// for 127.0.0.1 and for the name.
func SelfSigned(t testing.TB, name string) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}
