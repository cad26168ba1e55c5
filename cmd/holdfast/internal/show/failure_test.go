package show

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestFailure checks that a failure is one line, without the layers that have wrapped the error.
func TestFailure(t *testing.T) {
	const server = `(the server says "X")`
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 1}, Err: errors.New("connect: " + syscall.ECONNREFUSED.Error())}
	op := func(err error) error { return fmt.Errorf(`holdfast: acquire "a \"b\"": %w`, err) }
	unavailable := func(text string, cause error) error {
		return fmt.Errorf("%w: "+text+"%w", driver.ErrUnavailable, cause)
	}
	for _, c := range []struct {
		f    Failure
		want string
	}{
		{Failure{Store: "redis://h", Err: op(unavailable("cannot connect: ", errors.Join(refused)))}, `run "a \"b\"": the store redis://h: connection refused`},
		{Failure{Store: "redis://h", Err: op(unavailable("cannot connect: ", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}))},
			`run "a \"b\"": the store redis://h cannot be reached: dial tcp: connection refused; is the server up, and is this its port?`},
		{Failure{Store: "quorum+redis://g,h", Subject: `"x"`, Err: unavailable("1 of 3 did not take part: store is unavailable: cannot connect: ", refused)},
			`run "x": the store quorum+redis://g,h cannot be reached: 1 of 3 did not take part: 10.0.0.7:1: connection refused; are the servers up? holdfast doctor tells of each`},
		{Failure{Store: "redis://h", Source: "$HOLDFAST_STORE", Err: unavailable("", context.DeadlineExceeded)},
			`run: the store redis://h ($HOLDFAST_STORE) cannot be reached: it does not answer in time; is it up, and does a firewall let us through?`},
		{Failure{Store: "rediss://h", Err: unavailable("", context.DeadlineExceeded)},
			`run: the store rediss://h cannot be reached: it does not answer in time; is it up, and does it speak TLS at this port?`},
		{Failure{Store: "postgres://h/db", Err: unavailable("no answer: ", io.EOF)}, `run: the store postgres://h/db: no answer: EOF`},
		{Failure{Store: "postgres://h/db", Err: unavailable("", &tls.CertificateVerificationError{Err: errors.New("unknown")})},
			`run: the store postgres://h/db cannot be reached: tls: failed to verify certificate: unknown; name who has signed its certificate with ?sslrootcert=FILE`},
		{Failure{Store: "redis://h", Err: fmt.Errorf("%w: it loads its data: try again later "+server, driver.ErrUnavailable)},
			`run: the store redis://h: it loads its data: try again later ` + server},
		{Failure{Store: "sqlite:///f", Err: op(fmt.Errorf("%w: %w to this engine: /f was deleted", driver.ErrUnavailable, driver.ErrClosed))},
			`run "a \"b\"": the store sqlite:///f: closed to this engine: /f was deleted`},
		{Failure{Store: "redis://h", Err: op(fmt.Errorf("%w: check the password "+server, driver.ErrPermission))},
			`run "a \"b\"": the store redis://h refuses us: check the password ` + server},
		{Failure{Store: "memory:", Err: fmt.Errorf("holdfast: list \"\": listing is %w", driver.ErrUnsupported)}, `run: listing is not supported by the store memory:`},
		{Failure{Store: "http://h/x", Opening: true, Err: fmt.Errorf("%w: there is nothing at this path", driver.ErrUnsupported)}, `run: the store http://h/x: there is nothing at this path`},
		{Failure{Store: "redis://h", Err: op(fmt.Errorf("%w: the name is a semaphore", driver.ErrKindMismatch))}, `run "a \"b\"": in the store redis://h, the name is a semaphore`},
		{Failure{Store: "redis://h/x", Opening: true, Err: fmt.Errorf("%w redis URL: bad path", driver.ErrInvalid)}, `run: the store redis://h/x: invalid redis URL: bad path`},
		{Failure{Store: "redis://h", Subject: `"x"`, Err: fmt.Errorf("%w name: it is empty", driver.ErrInvalid)}, `run "x": invalid name: it is empty`},
		{Failure{Err: fmt.Errorf("%w configuration: /f, line 3", driver.ErrInvalid), Opening: true}, `run: invalid configuration: /f, line 3`},
		{Failure{Store: "redis://h", Err: op(fmt.Errorf("%w: no answer", driver.ErrOutcomeUnknown))}, `run "a \"b\"": the store redis://h: outcome is unknown: no answer`},
		{Failure{Store: "redis://h", Err: errors.New("onetime: redeem 0123456789ab: token is unknown")}, `run 0123456789ab: token is unknown`},
		{Failure{Store: "redis://h", Err: op(errors.New("held by ada@web-3"))}, `run "a \"b\"": held by ada@web-3`},
	} {
		c.f.Verb = "run"
		if got := c.f.String(); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}
