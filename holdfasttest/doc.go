// Package holdfasttest is for tests of programs that use holdfast.
//
// # What
//
// New returns a store in memory, with a client. The test can make the store fail, slow down, or
// lose leases and replies, and can let another client hold a lock. A lease that is left at the end
// fails the test. Redis starts a real server.
//
// # Example
//
// A worker that writes a row a minute for as long as it has a lock, and the test that
// it stops when it loses the lock, in virtual time:
//
//	func importRows(ctx context.Context, client *holdfast.Client, rows []string, write func(row string) error) error {
//		return client.Do(ctx, "import", nil, func(ctx context.Context, _ *holdfast.Lease) error {
//			for _, row := range rows {
//				if err := write(row); err != nil {
//					return err
//				}
//				select {
//				case <-time.After(time.Minute):
//				case <-ctx.Done():
//					return context.Cause(ctx)
//				}
//			}
//			return nil
//		})
//	}
//
//	func TestImportStopsWhenItLosesTheLock(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			k := holdfasttest.New(t)
//			written := 0
//			write := func(string) error { written++; return nil }
//			done := make(chan error, 1)
//			go func() { done <- importRows(t.Context(), k.Client, []string{"a", "b", "c"}, write) }()
//
//			k.AwaitHeld("import")
//			time.Sleep(90 * time.Second) // virtual: the worker has written two rows
//			k.Lose("import")
//			k.AwaitStop("import", time.Second)
//			if err := <-done; written != 2 || !errors.Is(err, holdfast.ErrLost) {
//				t.Errorf("%d rows, error %v; want 2, and that the lock was lost", written, err)
//			}
//		})
//	}
//
// docs/testing.md has an example for each fault that a program may meet.
//
// # Guarantees
//
// The store is package memlock, the reference for all engines, and passes the conformance suite of
// package enginetest. It has no faults except those that the test causes.
//
// When the test ends, New fails it for every lease of the kit's clients that was not ended by
// Release, Leave, or the end of do-once work, with the line of the program that acquired it. This
// includes leases that were lost: their holders must call Release too. Work that the end of
// t.Context stops has a second to release its locks.
//
// The kit starts no goroutine and needs only the standard library.
//
// # What is not promised
//
// The kit cannot see whether a program watches for the end of a context. AwaitStop waits until the
// program has called Release, and Held reports whether the program has the lock at that instant.
// The rest is up to the test: let the worker write to something that checks Held, or the fencing
// token, as the real resource should.
//
// Releasing a lease twice is allowed, and the kit does not report it. The real fault is work after
// the first release, which Held shows.
//
// The kit does not simulate what depends on a real store: failover, lost data, the latency of a
// network, the rights of a user. Redis starts a server for that.
//
// # Clocks
//
// The kit uses time.Now: the virtual time in a bubble of testing/synctest, or else real time. Call
// New with the T of the bubble, and not in a TestMain or a parent test. AwaitHeld, AwaitWaiters and
// AwaitStop take no virtual time if what they wait for happens by itself.
//
// # Errors
//
// A mistake in the test fails it with a line that begins with "holdfasttest:" and explains
// what to do. Clients return the errors of package holdfast: ErrLost after Lose, ErrHeld
// or a wait after HoldElsewhere, ErrUnavailable after BreakStore and SlowStore,
// ErrOutcomeUnknown from a Release whose reply DropReplies has lost.
package holdfasttest
