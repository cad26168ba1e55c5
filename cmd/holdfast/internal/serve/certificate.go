package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookAgain is how often files are checked for changes.
const lookAgain = time.Second

// A Certificate is the certificate of the server. It is reloaded when its files change; while
// the new files cannot be used, the old certificate stays.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	now    *tls.Certificate
	of     string // stamp of the files when they were last read
	looked time.Time
}

// LoadCertificate reads a certificate chain and its key.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	return c, c.Reload()
}

// Reload reads the files now.
func (c *Certificate) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked(c.stamp())
}

// Expiry returns when the certificate expires.
func (c *Certificate) Expiry() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Leaf.NotAfter
}

// Config returns the TLS configuration of a server with this certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"}, // otherwise a server that serves a Unix socket first would not offer h2
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
	}
}

// get returns the certificate. Now and then it checks the files, so that a renewal need not
// signal this process.
func (c *Certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < lookAgain {
		return c.now
	}
	c.looked = time.Now()
	if of := c.stamp(); of != c.of {
		if err := c.readLocked(of); err != nil {
			c.log.Error("the new certificate cannot be used: the old one stays in use", "error", err)
		} else {
			c.log.Info("there is a new certificate", "expires", c.now.Leaf.NotAfter)
		}
	}
	return c.now
}

// stamp returns a text that changes with the files.
func (c *Certificate) stamp() (text string) {
	for _, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			text += fmt.Sprintln(info.ModTime(), info.Size())
		}
	}
	return text
}

// readLocked reads the files. of is their stamp from before.
func (c *Certificate) readLocked(of string) error {
	c.of, c.looked = of, time.Now()
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("TLS certificate: %w", err)
	}
	c.now = &pair
	return nil
}
