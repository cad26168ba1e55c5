package httplock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// maxPause is the longest pause before a broken stream is opened again.
const maxPause = time.Second

// reopen opens a stream again and again, until ctx ends. After a long session it does not
// pause: another server may be up.
func reopen(ctx context.Context, session func() error) {
	var pauses ask.Backoff
	for ctx.Err() == nil {
		began := time.Now()
		_ = session() // another follows, whatever the error
		if time.Since(began) > maxPause {
			pauses = ask.Backoff{}
			continue
		}
		ask.Sleep(ctx, pauses.Next(maxPause))
	}
}

var errSilent = errors.New("the stream is silent")

// follow opens a stream and calls line with each line until the stream ends. A stream
// without a line for form.Silence is broken.
func follow[Line any](ctx context.Context, e *engine, at *server, method string, line func(*Line)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(form.Silence, func() { cancel(errSilent) })
	defer silence.Stop()
	response, _, err := e.open(ctx, at, method, form.Nothing{})
	if err != nil {
		e.avoid(at)
		return err
	}
	defer func() { _ = response.Body.Close() }()
	d := json.NewDecoder(response.Body)
	for {
		var one Line
		if err := d.Decode(&one); err != nil {
			if ctx.Err() == nil || context.Cause(ctx) == errSilent {
				e.avoid(at)
			}
			return err
		}
		silence.Reset(form.Silence)
		line(&one)
	}
}

// open sends a request whose reply is a stream of lines. The caller closes the body. again
// reports that another server may get the request.
func (e *engine) open(ctx context.Context, at *server, method string, req any) (_ *http.Response, again bool, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, false, err
	}
	response, again, err := e.send(ctx, at, method, body, true)
	if err != nil || response.StatusCode == http.StatusOK && kindOf(response) == form.Lines {
		return response, again, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return nil, false, fmt.Errorf("the answer was cut off: %w", err)
	}
	if again, err = e.read(at, response, text, nil); err == nil {
		err = e.foreign(at, response)
	}
	return nil, again, err
}

// openAny does as open, at the first server that answers.
func (e *engine) openAny(ctx context.Context, method string, req any) (response *http.Response, err error) {
	for range e.servers {
		at := e.chosen()
		var again bool
		if response, again, err = e.open(ctx, at, method, req); !again || !e.avoid(at) {
			break
		}
	}
	return response, err
}
