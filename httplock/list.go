package httplock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// List implements driver.Lister. The locks come as the server finds them.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return listed(ctx, e, e.capable.List, form.List, prefix, func(l form.Line) (lock lockinfo.LockState, ok bool) {
		if l.Lock == nil {
			return lock, false
		}
		return l.Lock.State(), true
	})
}

// ListRecords implements driver.Recorder.
func (e *engine) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	return listed(ctx, e, e.capable.Records, form.ListRecords, prefix, func(l form.Line) (info driver.RecordInfo, ok bool) {
		if l.Record == nil {
			return info, false
		}
		return *l.Record, true
	})
}

// listed asks for a list when its first element is asked for. What of returns of a line
// is yielded.
func listed[T any](ctx context.Context, e *engine, flag bool, method, prefix string, of func(form.Line) (T, bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := unsupported(method)
		if flag {
			err = e.lines(ctx, method, prefix, func(l form.Line) bool {
				v, ok := of(l)
				return !ok || yield(v, nil)
			})
		}
		if err != nil {
			yield(*new(T), err)
		}
	}
}

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
	for d := lines(response.Body); ; {
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
