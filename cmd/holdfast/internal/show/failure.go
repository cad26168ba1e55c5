package show

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Failure is an error of the library or an engine, with its context.
type Failure struct {
	Verb    string // of the command: run, token issue
	Subject string // the object of the command, in quotes; may be empty
	Store   string // URL without credentials; empty if unknown or irrelevant
	Source  string // what has named the store; empty if a flag of the command has
	Opening bool   // the error came while the store was opened: ErrInvalid is about its URL
	Err     error
}

const ( // compiled only when needed: most commands succeed
	// opPrefix matches the prefix of the library's errors: the operation, and the name of a lock
	// in quotes or the beginning of a token's digest.
	opPrefix = `^(?:holdfast|onetime): [a-z ]+?( "(?:[^"\\]|\\.)*"| [0-9a-f]{12})?: `

	// netPrefix matches the prefix of errors of package net, with the address.
	netPrefix = `(?:dial|read|write) \w+:? (?:\S+->|lookup )?(\S+?)(?: on \S+)?: (?:(?:connect|read|write): )?`
)

// String returns one line: the command, the store, the error, and what to do about it. It leaves
// out the prefixes of the layers through which the error came.
func (f Failure) String() string {
	text := f.Err.Error()
	if m := regexp.MustCompile(opPrefix).FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if name := strings.TrimSpace(m[1]); name != "" && name != `""` {
			f.Subject = name
		}
	}
	what := f.Verb
	if f.Subject != "" {
		what += " " + f.Subject
	}
	return what + ": " + f.sentence(strings.TrimPrefix(text, "holdfast: "))
}

// sentence describes an error by its class.
func (f Failure) sentence(text string) string {
	if f.Store == "" {
		return text
	}
	store := "the store " + f.Store
	if f.Source != "" {
		store += " (" + f.Source + ")"
	}
	class := driver.Class(f.Err)
	if class == driver.ErrClosed && errors.Is(f.Err, driver.ErrUnavailable) { // a file that was deleted
		class = driver.ErrUnavailable
	}
	if class != nil {
		text = strings.TrimPrefix(text, class.Error()+": ")
	}
	switch {
	case class == driver.ErrUnavailable:
		text = f.addresses(strings.NewReplacer(class.Error()+": ", "", "cannot connect: ", "").Replace(text))
		if hint := f.hint(); hint != "" {
			return store + " cannot be reached: " + text + "; " + hint
		}
		return store + ": " + text
	case class == driver.ErrPermission:
		return store + " refuses us: " + text
	case class == driver.ErrUnsupported && strings.Contains(text, class.Error()):
		return strings.Replace(text, class.Error(), "not supported by "+store, 1)
	case class == driver.ErrKindMismatch:
		return "in " + store + ", " + text
	case class == driver.ErrUnsupported, class == driver.ErrInvalid && f.Opening, errors.Is(f.Err, driver.ErrOutcomeUnknown):
		return store + ": " + f.addresses(text)
	}
	return text
}

// addresses shortens errors of package net. It keeps the address if the store has several.
func (f Failure) addresses(text string) string {
	text = strings.ReplaceAll(text, context.DeadlineExceeded.Error(), "it does not answer in time")
	address := ""
	if strings.Contains(f.Store, ",") || strings.Contains(f.Store, "sentinel") {
		address = "$1: "
	}
	return regexp.MustCompile(netPrefix).ReplaceAllString(text, address)
}

// hint returns what to check if a store cannot be reached, or "".
func (f Failure) hint() string {
	_, isUntrusted := errors.AsType[*tls.CertificateVerificationError](f.Err)
	_, isUnknown := errors.AsType[*net.DNSError](f.Err)
	timeout, isTimeout := errors.AsType[net.Error](f.Err)
	isTimeout = isTimeout && timeout.Timeout()
	secure := strings.Contains(f.Store, "rediss")
	isCut := errors.Is(f.Err, io.EOF) || errors.Is(f.Err, syscall.ECONNRESET)
	switch {
	case isUntrusted:
		return "name who has signed its certificate with ?" + caParameter(f.Store) + "=FILE"
	case isUnknown:
		return "is the host's name right?"
	case errors.Is(f.Err, syscall.ECONNREFUSED):
		return "is the server up, and is this its port?"
	case secure && (isCut || isTimeout):
		return "is it up, and does it speak TLS at this port?"
	case isCut && !strings.HasPrefix(f.Store, "postgres"):
		return "does it want TLS (rediss://)?"
	case isTimeout:
		return "is it up, and does a firewall let us through?"
	case strings.Contains(f.Err.Error(), "did not take part"):
		return "are the servers up? holdfast doctor tells of each"
	case strings.Contains(f.Err.Error(), "unknown command 'SENTINEL'"), strings.Contains(f.Err.Error(), "unknown command `SENTINEL`"):
		return "is it a Sentinel? Their port is 26379 as a rule"
	}
	return ""
}

// caParameter returns the URL parameter of a store for the file with the certificate authority.
func caParameter(store string) string {
	switch {
	case strings.HasPrefix(store, "postgres"):
		return "sslrootcert"
	case strings.HasPrefix(store, "http"):
		return "ca_file"
	}
	return "tls_ca"
}
