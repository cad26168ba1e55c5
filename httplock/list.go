package httplock

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// List implements driver.Lister. The locks are in the order in which the server finds them.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return listed(ctx, e, e.capable.List, form.List, prefix, func(l form.Line, yield func(lockinfo.LockState, error) bool) bool {
		return l.Lock == nil || yield(l.Lock.State(), nil)
	})
}

// ListRecords implements driver.Recorder.
func (e *engine) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	return listed(ctx, e, e.capable.Records, form.ListRecords, prefix, func(l form.Line, yield func(driver.RecordInfo, error) bool) bool {
		return l.Record == nil || yield(*l.Record, nil)
	})
}

// listed requests a list when the caller begins to iterate. each yields the element of a line,
// and reports whether to go on.
func listed[T any](
	ctx context.Context, e *engine, flag bool, method, prefix string, each func(form.Line, func(T, error) bool) bool,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := unsupported(method)
		if flag {
			err = e.lines(ctx, method, prefix, func(l form.Line) bool { return each(l, yield) })
		}
		if err != nil {
			yield(*new(T), err)
		}
	}
}

// lineBuffer is how much of a list is read at once.
const lineBuffer = 32 << 10

// lines calls each with the lines of a list until it returns false, or the list ends. After
// an error the list is incomplete.
func (e *engine) lines(ctx context.Context, method, prefix string, each func(form.Line) bool) error {
	if e.life.Err() != nil {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := e.openAny(ctx, method, form.Prefix{Prefix: prefix})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	for d := json.NewDecoder(bufio.NewReaderSize(response.Body, lineBuffer)); ; {
		var l form.Line
		switch err := d.Decode(&l); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the list was cut off: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return fmt.Errorf("the list was cut off: %w", err)
		case l.Error != nil:
			return l.Error.Err()
		case l.End || !each(l):
			return nil
		}
	}
}
