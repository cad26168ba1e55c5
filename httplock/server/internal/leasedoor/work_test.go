package leasedoor_test

import (
	"context"
	"errors"

	"github.com/holdfast-locks/holdfast"
)

// work is do-once work with a result.
func work(value string) func(context.Context, *holdfast.Lease) ([]byte, error) {
	return func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte(value), nil }
}

// notDone is do-once work that the test expects not to run.
func notDone(context.Context, *holdfast.Lease) ([]byte, error) {
	return nil, errors.New("the work is done already")
}
