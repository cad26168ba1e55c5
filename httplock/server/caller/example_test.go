package caller_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/memlock"
)

// byCertificate identifies callers by the names in their certificates. The http.Server has verified
// these: its ClientAuth is tls.VerifyClientCertIfGiven.
type byCertificate struct{}

func (byCertificate) Identify(r *http.Request) (*caller.Caller, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil, nil // there is no certificate: another Source may know the caller
	}
	return ofCertificate(r.TLS.VerifiedChains[0][0])
}

func ofCertificate(c *x509.Certificate) (*caller.Caller, error) {
	name := c.Subject.CommonName
	if name == "" {
		return nil, caller.Wrong("the certificate has no common name")
	}
	return &caller.Caller{Name: name, Rights: caller.Acquire | caller.Read, Prefixes: []string{name + "/"}}, nil
}

// Use your own Source in front of a file of tokens.
func ExampleSource() {
	callers := caller.First(byCertificate{}) // and caller.Open("/etc/holdfast/callers.json", nil)
	store, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.New(store, &server.Options{Callers: callers})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close(context.Background())

	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/locks", nil))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output: 401 Bearer realm="holdfast"
}
