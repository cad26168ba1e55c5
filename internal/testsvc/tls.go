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

// RedisTLS starts a redis-server that accepts only TLS, and only clients with a certificate of the
// same authority as its own. The server's certificate is for 127.0.0.1 and for the name redis.test.
func RedisTLS(t testing.TB, extraArgs ...string) (*Server, TLSFiles) {
	t.Helper()
	dir := t.TempDir()
	ca := newAuthority(t, filepath.Join(dir, "ca.pem"))
	serverCert, serverKey := ca.sign(t, dir, "server")
	files := TLSFiles{CA: ca.file}
	files.Cert, files.Key = ca.sign(t, dir, "client")
	s := redisServer(t, ready, func(s *Server) []string {
		_, port, _ := net.SplitHostPort(s.Addr)
		s.URL = "rediss://" + s.Addr
		return dataArgs(s, append([]string{
			"--port", "0", "--tls-port", port, "--tls-auth-clients", "yes",
			"--tls-cert-file", serverCert, "--tls-key-file", serverKey, "--tls-ca-cert-file", ca.file,
		}, extraArgs...))
	})
	return s, files
}

// An authority signs certificates for a day.
type authority struct {
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, file string) *authority {
	t.Helper()
	a := &authority{file: file, key: newKey(t)}
	template := certificate("an authority for tests")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	must(t, err)
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	writePEM(t, file, "CERTIFICATE", der)
	return a
}

// sign returns the files of a new certificate and its key.
func (a *authority) sign(t testing.TB, dir, name string) (cert, key string) {
	t.Helper()
	k := newKey(t)
	template := certificate(name)
	template.DNSNames, template.IPAddresses = []string{"redis.test"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, k.Public(), a.key)
	must(t, err)
	keyDER, err := x509.MarshalECPrivateKey(k)
	must(t, err)
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	writePEM(t, cert, "CERTIFICATE", der)
	writePEM(t, key, "EC PRIVATE KEY", keyDER)
	return cert, key
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
