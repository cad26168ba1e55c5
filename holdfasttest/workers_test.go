package holdfasttest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// A worker is a function as programs contain it. Of each pair one is right, and the other has a
// plausible fault. Workers write rows under the lock "import" unless their comments differ.
type worker func(ctx context.Context, client *holdfast.Client, write func(row string) error) error

// rightWorker follows the documentation.
func rightWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	return client.Do(ctx, "import", nil, func(ctx context.Context, _ *holdfast.Lease) error {
		return write("row")
	})
}

// longWorker writes a row every 10 ms while it holds the lock.
func longWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	return client.Do(ctx, "import", nil, func(ctx context.Context, _ *holdfast.Lease) error {
		for range 100 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(10 * time.Millisecond):
			}
			if err := write("row"); err != nil {
				return err
			}
		}
		return nil
	})
}

// deafWorker ignores the context that ends with the lease.
func deafWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	return client.Do(ctx, "import", nil, func(context.Context, *holdfast.Lease) error {
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			if err := write("row"); err != nil {
				return err
			}
		}
		return nil
	})
}

// carelessWorker does not release a lost lease.
func carelessWorker(ctx context.Context, client *holdfast.Client, _ func(string) error) error {
	lease, err := client.Acquire(ctx, "import", nil)
	if err != nil {
		return err
	}
	<-lease.Context().Done()
	return context.Cause(lease.Context())
}

// forgetfulWorker keeps the lock if writing fails.
func forgetfulWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	lease, err := client.Acquire(ctx, "import", nil) // the line that the kit names
	if err != nil {
		return err
	}
	if err := write("row"); err != nil {
		return err
	}
	return lease.Release(ctx)
}

// twiceWorker releases the lock as soon as the row is written, so that no other worker waits for
// the receipt, and again at the end. The second release does nothing. The fault is the work between
// the two.
func twiceWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	lease, err := client.Acquire(ctx, "import", nil)
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	if err := write("row"); err != nil {
		return err
	}
	if err := lease.Release(ctx); err != nil {
		return err
	}
	return write("receipt")
}

// onceWorker writes the row and the receipt under the lock.
func onceWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	return client.Do(ctx, "import", nil, func(context.Context, *holdfast.Lease) error {
		return errors.Join(write("row"), write("receipt"))
	})
}

// greedyWorker holds the orders while it waits for the stock.
func greedyWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	return client.Do(ctx, "orders", nil, func(ctx context.Context, _ *holdfast.Lease) error {
		return client.Do(ctx, "stock", nil, func(context.Context, *holdfast.Lease) error { return write("row") })
	})
}

// modestWorker holds nothing while it waits for the stock.
func modestWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	return client.Do(ctx, "stock", nil, func(ctx context.Context, _ *holdfast.Lease) error {
		return client.Do(ctx, "orders", nil, func(context.Context, *holdfast.Lease) error { return write("row") })
	})
}

// boldWorker works without the lock if the store is unavailable.
func boldWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	lease, err := client.Acquire(ctx, "import", nil)
	if err == nil {
		defer lease.Release(ctx)
	} else if errors.Is(err, holdfast.ErrHeld) {
		return err
	}
	return write("row")
}

// patientWorker does not end when its caller's context ends.
func patientWorker(_ context.Context, client *holdfast.Client, write func(string) error) error {
	return rightWorker(context.Background(), client, write)
}

// zealousWorker takes a release without a reply for failed work.
func zealousWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	for {
		lease, err := client.Acquire(ctx, "import", nil)
		if err != nil {
			return err
		}
		if err := write("row"); err != nil {
			return errors.Join(err, lease.Release(ctx))
		}
		if lease.Release(ctx) == nil {
			return nil
		}
	}
}

// knockingWorker polls, and so has no place in the queue.
func knockingWorker(ctx context.Context, client *holdfast.Client, write func(string) error) error {
	for {
		lease, err := client.TryAcquire(ctx, "import", nil)
		switch {
		case err == nil:
			return errors.Join(write("row"), lease.Release(ctx))
		case !errors.Is(err, holdfast.ErrHeld):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// localWorker locks only within its process.
func localWorker() worker {
	locks := map[*holdfast.Client]*sync.Mutex{} // a process has one client
	var mu sync.Mutex
	return func(_ context.Context, client *holdfast.Client, write func(string) error) error {
		mu.Lock()
		own := locks[client]
		if own == nil {
			own = &sync.Mutex{}
			locks[client] = own
		}
		mu.Unlock()
		own.Lock()
		defer own.Unlock()
		return write("row")
	}
}
