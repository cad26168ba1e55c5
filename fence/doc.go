// Package fence is the half of a fencing token that the resource keeps: it
// refuses a holder whose lease has ended but who does not know it yet.
//
// # What
//
// A lease ends by the store's clock, and a process may be stopped for longer
// than any lease: by a garbage collector, a full disk, a virtual machine that
// is moved. When it wakes, it writes as if nothing had happened. No lock can
// prevent that; the resource can. It remembers the greatest token it has seen,
// its mark, and refuses every smaller one.
//
// # Example
//
//	gate, err := fence.NewGate(nil) // in the process of the resource
//	if err != nil {
//		return err
//	}
//	err = gate.Write("seat/12A", lease, func() error {
//		return print(ticket)
//	})
//	if errors.Is(err, fence.ErrStale) {
//		return refund(ticket) // a later holder has the seat
//	}
//
// # Guarantees
//
// After a claim was accepted, no claim with a smaller token is accepted, and none of
// another lease with the same token. The guards decide in one step with the write:
// Gate.Write under the gate's own lock, the others in a transaction, a statement or a
// script.
//
// # What is not promised
//
// A resource that does not check tokens is not guarded. Fencing does not keep two holders from
// working at once; it refuses the older one's writes.
//
// # Clocks
//
// None is read.
//
// # Errors
//
// [ErrStale], as a *StaleError, has the refused token and the resource's mark. A malformed
// claim is driver.ErrInvalid.
//
// # Testing
//
// A [Gate] is in memory and needs nothing. A lease of package memlock has tokens like
// any other.
//
// # The rule
//
// A claim (the token and the ID of a lease) is accepted if and only if its
// token is greater than the mark, or equal to it with the same lease ID. An
// accepted claim becomes the mark. The mark never goes down.
//
// # The two verbs
//
// Advance makes the resource store the claim before anything is read, and
// Check goes with each write. Both apply the rule. The difference is when:
//
// Checking writes alone loses updates. A (token 33) reads a value and is
// stopped; B (34) reads the same value; A wakes and writes: 33 is the greatest
// token so far, the write is accepted; B writes what it computed from the old
// value, with a greater token still. A's update is gone and nothing was
// refused. After Advance(34) the resource accepts nothing of 33 any more, so
// what B reads stays true until B's own writes.
//
// A holder who works on several resources under one lock must advance all of
// them before it reads any. Fencing keeps the work of two holders from
// interleaving; it does not undo the half of the work that a holder did before
// it was refused. The *StaleError tells it to do that itself.
//
// # The guards
//
//   - Package sqlfence is for PostgreSQL, MySQL, MariaDB and SQLite: Advance is
//     the first statement of a transaction and does both verbs.
//   - Package httpfence guards an HTTP service, over a [Gate] or any other
//     [Marks], and sends the token of the lease in a request's context.
//   - [Gate] keeps the marks of resources that live in this process.
//   - The engine for Redis and Valkey has a guard of its own.
//
// This package has the rule and the code that all guards share, and does not import net/http
// or database/sql. A custom guard begins with [CheckClaim], refuses with a [*StaleError],
// and reports to an Observer through a [Reporter].
//
// All functions and methods are safe for concurrent use.
package fence
