package drivertest

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// An Everything is an engine with all methods that send a request about one name.
type Everything interface {
	driver.Engine
	driver.Queuer
	driver.Downgrader
	driver.AllAcquirer
	driver.Recorder
	driver.Lister
}

// Calls returns a function for each kind of call. The function makes the call and returns its error.
func Calls(ctx context.Context, e Everything, name string) map[string]func() error {
	req := Request(name, time.Minute)
	return map[string]func() error{
		"acquire": func() error { _, err := e.Acquire(ctx, Request(name, time.Minute)); return err },
		"extend": func() error {
			return e.Extend(ctx, []driver.ExtendRequest{{Name: name, LeaseID: req.LeaseID, TTL: time.Minute}})[0]
		},
		"release": func() error {
			return e.Release(ctx, driver.ReleaseRequest{Name: name, LeaseID: req.LeaseID})
		},
		"inspect": func() error { _, err := e.Inspect(ctx, name); return err },
		"list": func() error {
			for _, err := range e.List(ctx, "") {
				return err
			}
			return nil
		},
		"refresh": func() error {
			return e.Refresh(ctx, []driver.RefreshRequest{{Name: name, LeaseID: req.LeaseID, WaiterTTL: time.Minute}})[0].Err
		},
		"downgrade": func() error {
			return e.Downgrade(ctx, driver.DowngradeRequest{Name: name, LeaseID: req.LeaseID})
		},
		"acquire all": func() error {
			_, err := e.AcquireAll(ctx, []driver.AcquireRequest{Request(name, time.Minute)})
			return err
		},
		"complete": func() error {
			return e.Complete(ctx, driver.CompleteRequest{Name: name, LeaseID: req.LeaseID, Retention: time.Minute})
		},
		"recall": func() error { _, _, err := e.Recall(ctx, name); return err },
		"forget": func() error { _, err := e.Forget(ctx, name); return err },
	}
}
