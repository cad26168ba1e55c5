package goredislock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// isNil reports whether err is go-redis's error for a nil reply, perhaps wrapped by a hook.
// go-redis also wraps this error if no sentinel knows the master; that is not a nil reply.
func isNil(err error) bool { return errors.Is(err, redis.Nil) && !isUnknownMaster(err) }

func isUnknownMaster(err error) bool {
	return errors.Is(err, redis.Nil) && strings.Contains(err.Error(), "all sentinels")
}

// clientError converts an error of the client into one that rediscore.Conn describes.
func clientError(err error) error {
	var reply redis.Error
	var op *net.OpError
	switch {
	case err == nil:
		return nil
	case isNil(err):
		return errors.New("the server says nothing where it should")
	case isUnknownMaster(err):
		return fmt.Errorf("%w: cannot connect: %w", driver.ErrUnavailable, err)
	case errors.Is(err, errNoConnection):
		return err
	case errors.As(err, &reply):
		return rediscore.ReplyError(reply.Error())
	case errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%w: the client is", driver.ErrClosed)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return fmt.Errorf("%w: no connection of the client's pool became free: raise PoolSize, or give the locks a client of their own: %w", driver.ErrUnavailable, err)
	case errors.As(err, &op) && op.Net == "unix" && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: cannot connect: %w", driver.ErrPermission, err)
	case isDial(err):
		return fmt.Errorf("%w: cannot connect: %w", driver.ErrUnavailable, err)
	case isSilence(err):
		return &givenUp{err}
	}
	return fmt.Errorf("no answer from the server: %w", err)
}

// isDial reports whether there was no connection, so that nothing was sent.
func isDial(err error) bool {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &certificate) || errors.As(err, &record)
}

// isSilence reports whether a connection broke, was given up because no reply arrived, or could not
// be made.
func isSilence(err error) bool {
	var network net.Error
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, redis.ErrPoolTimeout) &&
		(errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// A givenUp is the error of a connection that ended without a reply. The client has closed it, and
// the next request uses another one. The server may have carried out the request.
type givenUp struct{ err error }

func (e *givenUp) Error() string { return fmt.Sprintf("no answer from the server: %v", e.err) }
func (e *givenUp) Unwrap() error { return e.err }

// Is makes it rediscore.ErrGivenUp.
func (e *givenUp) Is(target error) bool { return target == rediscore.ErrGivenUp }
