package pglock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-locks/holdfast/driver"
)

// SQLSTATE codes of the server. Those with two characters are classes.
const (
	warning            = "01000"
	connectionBroken   = "08"
	readOnly           = "25006"
	invalidUser        = "28"
	noDatabase         = "3D000"
	noSchema           = "3F000"
	noRight            = "42501"
	noFunction         = "42883"
	noTable            = "42P01"
	noColumn           = "42703"
	noStatement        = "26000"
	otherStatement     = "42P05"
	tooManyConnections = "53300"
	cancelled          = "57014"
)

// errNotReplicated is the outcome of a commit whose wait for a synchronous standby was cancelled:
// the server reports success with a warning. It is not definite, because a failover to that standby
// undoes the commit.
var errNotReplicated = errors.New("the server has committed the request, and the wait for its standby was cancelled")

// interrupted returns the error of a request whose context ended before anything was done, or that
// was undone.
func interrupted(ctx context.Context) error {
	if context.Cause(ctx) == driver.ErrClosed { // not the loss of a lease of a closed client, which wraps it
		return driver.ErrClosed
	}
	return fmt.Errorf("%w: the request ended before it was carried out: %w", driver.ErrUnavailable, ctx.Err())
}

// A plainError has a different text from the error that it wraps.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// failure translates the error of a request that was sent. It is definite if the server has undone
// the request, which it does after an error, but not always if the connection ends.
func (p *pools) failure(ctx context.Context, err error) error {
	refusal, refused := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil || driver.Definite(err) || errors.Is(err, errNotReplicated):
		return err
	case !refused && pgconn.SafeToRetry(err):
		return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
	case !refused && ctx.Err() != nil:
		return fmt.Errorf("no answer from the server: %w (%w)", err, ctx.Err())
	case !refused:
		return fmt.Errorf("no answer from the server: %w", err)
	case refusal.SeverityUnlocalized != "ERROR" || strings.HasPrefix(refusal.Code, connectionBroken):
		return fmt.Errorf("the server has ended the connection: %w", err) // the server may have committed before
	case refusal.Code == cancelled && ctx.Err() != nil:
		return interrupted(ctx)
	}
	switch refusal.Code {
	case noSchema, noFunction, noTable, noColumn: // check the schema again
		p.installed.done.Store(false)
	case noStatement, otherStatement: // a pooler, or a hook of the pool, does not keep them
		p.installed.direct.Store(false)
	case readOnly: // the server is not the primary any more: connect to the one that is
		p.main.Reset()
		p.reserve.Reset()
	}
	return p.installed.refusal(refusal)
}

// refusal converts an error of the server, and adds advice.
func (i *installation) refusal(err *pgconn.PgError) error {
	class, advice := driver.ErrUnavailable, ""
	switch {
	case err.Code == noRight:
		class, advice = driver.ErrPermission, ": have its owner run "+i.grants()
	case strings.HasPrefix(err.Code, invalidUser):
		class = driver.ErrPermission
	case err.Code == noDatabase:
		class = driver.ErrInvalid
	case err.Code == readOnly:
		advice = ": it is a standby, or set to be read-only: use the primary"
	case slices.Contains([]string{noSchema, noFunction, noTable, noColumn}, err.Code):
		advice = ": what holdfast has installed in the schema is not whole"
	case err.Code == tooManyConnections:
		advice = ": use fewer (pool_max_conns), or a pooler"
	}
	return fmt.Errorf("%w: %w", class, &plainError{err.Message + advice, err})
}

// connectError returns the error of a request that got no connection: nothing was sent.
func (p *pools) connectError(ctx context.Context, err error) error {
	refusal, refused := errors.AsType[*pgconn.PgError](err)
	_, failed := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case p.life.Err() != nil:
		return driver.ErrClosed
	case ctx.Err() != nil:
		return interrupted(ctx)
	case refused && refusal.Code == noRight:
		text := fmt.Sprintf("%s: have its owner run GRANT CONNECT ON DATABASE %s TO %s", refusal.Message, p.installed.database, p.installed.user)
		return fmt.Errorf("%w: %w", driver.ErrPermission, &plainError{text, refusal})
	case refused:
		return p.installed.refusal(refusal)
	case failed:
		return fmt.Errorf("%w: cannot connect: %w", driver.ErrUnavailable, &plainError{oneLine(errors.Unwrap(err)), err})
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
}

// oneLine returns the error of several attempts in one line, each text once.
func oneLine(err error) string {
	var texts []string
	for text := range strings.Lines(err.Error()) {
		if text = strings.TrimSpace(text); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}
