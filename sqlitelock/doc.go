// Package sqlitelock is the embedded engine: the processes of one host share
// locks through a single SQLite file, with no server.
//
// # What
//
// [Open] opens a file, or makes it. Any number of programs and users may have it open;
// [MakeSystem] makes one for all users of a host. What Redis does for many hosts, this
// does for one: all modes, queues, do-once records, one-time tokens.
//
// # Example
//
//	engine, err := sqlitelock.Open(ctx, "/var/lib/billing/locks.db", nil)
//	if err != nil {
//		return err
//	}
//	client, err := holdfast.New(engine, nil) // client.Close closes the engine, too
//
// # Guarantees
//
// A write transaction decides each request, so that conflicting leases are never live at
// once, whenever a process dies. Waiters are served in order, and are notified within
// milliseconds, in other processes too. A reboot ends all leases.
//
// # What is not promised
//
// Nothing beyond one host: a file on a network file system is refused. A user who may write
// the file can take any lock away. A process that is stopped while it writes delays the
// others; see Files.
//
// # Clocks
//
// The store's clock is the host's boot-time clock. It is the same for every process, counts
// while the machine sleeps, and cannot be set. Leases and places in the queue are stored
// with the boot ID, and a reboot ends them: neither a step of the wall clock nor a reboot
// makes two holders or a lock that never ends. Linux and macOS have such a clock; on other
// systems Open fails with driver.ErrUnsupported.
//
// A container of systemd-nspawn or LXC has a boot ID of its own. If it shares a file with processes
// outside it, each side treats leases of the other as leases of an earlier boot. On Linux Open returns
// driver.ErrInvalid while an engine has the file open under another boot ID. It does not notice
// leases of programs that have ended, such as a person's hold: such a container needs its own file,
// or a server.
//
// The wall clock has two uses. Fencing tokens follow it, and grow even if it steps back.
// Records of do-once work, and one-time tokens, survive a reboot: before it the boot-time
// clock ends them, afterwards the wall clock does. A wall clock that is wrong by an hour
// after a reboot ends a record an hour early or late.
//
// # Fencing
//
// Tokens follow the wall clock, and grow even if it steps back: see Clocks. Durability
// describes the effect of a power cut. Package sqlfence checks tokens in databases,
// including this file if the application keeps its data there.
//
// # Errors
//
// Package driver defines the errors. A path that cannot be a lock database is ErrInvalid,
// or ErrPermission if this user may not write it. A full disk, a damaged file, or one that
// stays busy for five seconds is ErrUnavailable, and nothing was done. Only a commit that
// fails is ErrOutcomeUnknown, which package holdfast resolves.
//
// # Testing
//
// A file in a test's own directory is a real store, and fast. To test leases of hours in virtual
// time, use package holdfasttest, whose client is in memory.
//
// # Files
//
// A database has four more files: SQLite's `-wal` and `-shm`, and two of holdfast. A process
// writes to the bell, `-bell`, when it hands a lock over, which wakes the new holder in
// another process. It writes to `-alarm` when it breaks a lock, so that the holder stops.
// All files must be on a local file system, because the processes share memory through
// SQLite's write-ahead log. On a network file system, or one shared by several virtual
// machines, Open fails unless Options.AllowNetwork is set. Only the owner can read and write
// a new database (mode 0600). To share the locks between users, give the directory and all
// the files to a group whose members trust each other, or use MakeSystem. Files that are made
// again later get the group and the mode of the database.
//
// One file has one path. Open refuses a database that has several names (hard links) or is a mount
// point itself: its other path would have a separate log, without the leases. It refuses a
// directory that every user may write, unless it is sticky, and other users' files in a sticky one.
// The only symbolic link that it follows is one to the database. In each request an engine compares
// the database, the log and the shared memory with the files that it opened. Once one of them was
// deleted, replaced or moved, Extend and Release return driver.ErrLost, and all else returns an
// error that wraps both driver.ErrUnavailable and driver.ErrClosed, which also ends waits in the
// queue: close the engine and open the path again. If the files are moved back, the engine serves
// again. While the database has a second name, Extend and Release return driver.ErrLost too, and
// all else returns driver.ErrUnavailable, which waiters ride out. On Linux, while an engine has the
// old files open, Open of the path fails with driver.ErrUnavailable: engines lock a byte of the
// directory and of its parent to show which file they use.
//
// MakeSystem makes a system store, for root and the members of a group. Root trusts the members
// with the locks only. Its directory has mode 3770 and its files mode 0660. All belong to root and
// the group, and remain when the last engine is closed. Members cannot delete or replace a file,
// nor plant one that SQLite would open. The owner and the mode of the directory identify the store
// by any path. Open requires that all files exist as root made them, that only root can replace a
// directory above, and that the schema is exactly holdfast's: a member's trigger or view
// would run in the processes of others. Each transaction checks the schema again. The directory
// must not be moved while the store is in use: unlike with other stores, Open does not notice it,
// because every user could fake the sign. If a program such as sqlite3 is the last to close the
// database, it deletes the log: MakeSystem makes it again. If a program has changed the journal mode,
// Open refuses the store until root has set it back to WAL; Open of another store does that itself.
//
// A backup must go through SQLite: a program that holds an Engine must not
// open and close the database file itself, since closing it drops SQLite's
// file locks.
//
// A process that is stopped (SIGSTOP) in the few microseconds of a write keeps the others
// from writing until it continues or dies. Their requests fail with driver.ErrUnavailable
// after five seconds, and holders learn of a loss in time.
//
// # Durability
//
// A commit survives the death of any process, at any instant. It is not
// flushed to the disk (PRAGMA synchronous=NORMAL), so a power cut may undo the latest
// commits. That is harmless to exclusion, because a reboot ends all leases, and to tokens,
// because they follow the wall clock: a token is greater than a lost one unless the power
// cut sets the clock back. A record is flushed before Complete returns, and a change of a
// one-time token before the reply, so that no payload is handed out twice.
//
// # One-time tokens
//
// Tokens last as records do: see Clocks. Prune deletes old ones; package onetime calls it. Payloads
// are stored in the clear, readable for every user who can read the file; the secrets are not
// stored. A deleted payload is overwritten in the database file (PRAGMA secure_delete). A copy can
// remain in the write-ahead log until the log is overwritten or the last engine is closed, and
// afterwards in free blocks of the file system.
//
// # Versions
//
// Open refuses a database whose schema has an unknown number, and does not change it.
//
// # Concurrency
//
// An Engine is safe for concurrent use, and any number of engines in any
// number of processes may be open on one file. Requests of an engine that
// wait for the write lock are committed together, in the order of their arrival; the failure
// of one does not affect the others.
//
// The first place in a queue starts a goroutine that listens to the bell. The first lease
// that a client holds for longer than driver.LossStart starts one that listens to the alarm.
// Close ends both and waits for them.
package sqlitelock
