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
//	engine, err := sqlitelock.Open(ctx, "/var/lib/billing/locks.db")
//	if err != nil {
//		return err
//	}
//	defer engine.Close()
//	client, err := holdfast.New(engine, nil)
//
// # Guarantees
//
// A write transaction decides each request, so that leases that exclude each other
// are never live at once, whichever process dies at whatever instant. Those who
// wait are served in order, and hear of it within milliseconds in other processes as
// well. A reboot ends all leases.
//
// # What is not promised
//
// Nothing beyond one host: a file on a network file system is refused. Whoever may
// write the file can take any lock away. A process that is stopped while it writes
// holds the others up for as long; see Files.
//
// # Clocks
//
// The store's clock is the host's boot-time clock, which every process on the
// host reads alike, which counts while the machine sleeps, and which nobody
// can set. A lease and a place in the queue are stored with the boot ID, so
// those of an earlier boot are over at once: neither a step of the wall clock
// nor a reboot makes two holders or a lock that never ends. Linux and macOS
// have such a clock; on other systems Open fails with driver.ErrUnsupported.
//
// The wall clock is used for two things only. Fencing tokens follow it, and grow
// even if it steps back. Records of work done once, and one-time tokens, must
// outlive a reboot: in the boot that wrote one the boot-time clock ends it, and
// after a reboot the wall clock does. So a step of the wall clock matters to a
// record only if there was a reboot since: a clock that is wrong by an hour then
// ends the record an hour early or late.
//
// # Fencing
//
// Tokens follow the wall clock, and grow even if it steps back: see Clocks, and
// Durability for what a power cut may take. Package sqlfence checks them in
// databases, in this file's too if the application has it for its own data.
//
// # Errors
//
// They are those of package driver. A file that cannot be what it should be is
// ErrInvalid, or ErrPermission if this user may not write it; a full disk, a damaged
// file, or one that others hold for five seconds is ErrUnavailable, and nothing was
// done. Only a commit that fails half-way is ErrOutcomeUnknown, and package holdfast
// finds out.
//
// # Testing
//
// A file in a test's own directory is a real store, and quick. For leases of hours
// in no time there is package holdfasttest, whose client is in memory.
//
// # Files
//
// Beside the database lie SQLite's own `-wal` and `-shm` files, and two of ours. A
// process writes to the bell, `-bell`, when it hands a lock over, so that the
// waiter that has it now wakes up in its own process. It writes to `-alarm` when it
// breaks a lock, so that the holder stops. All belong together and must be on a
// local file system: SQLite's write-ahead log needs memory that the processes
// share. On a network file system, or one that several virtual machines have,
// Open fails, unless Options.AllowNetwork says that no other host uses the file.
// A new database can be read and written by its owner only (mode 0600); to share
// the locks between users give the directory and all the files to a group, whose members
// trust each other, or use MakeSystem.
//
// One file has one path. Open refuses a database that has several names (hard
// links) or is a mount point itself: whoever had it by the other path would have
// a log of his own, and see no lease. It refuses a directory that every user may
// write, unless it is sticky, and there files of others; and it follows no
// symbolic link but one to the database. While an engine is open it compares the
// database, the log and the shared memory with what it opened, in each request:
// once one of them was deleted, replaced or moved, Extend and Release answer
// driver.ErrLost, and all else driver.ErrUnavailable. On Linux whoever opens the
// path meanwhile is refused with driver.ErrUnavailable, as long as an engine has
// the old files open: a lock on a byte of the directory, and of the one above it,
// tells that.
//
// A system store is one that root has made with MakeSystem, for itself and the members
// of a group, whom it trusts with the locks and with nothing else. Its directory is
// root's and the group's, with mode 3770; its files are too, with mode 0660, and stay
// when the last engine is closed. Members cannot delete or replace one, nor plant one
// that SQLite would open. A directory of that form is known as such by whichever path
// somebody comes. Open then demands that all files are there and as root has made them,
// that only root can replace any directory above, and that the schema is exactly ours:
// with none of somebody's triggers or views, which would run in the processes of others.
// That is looked at again in each transaction. The directory must not be moved while the
// store is in use: unlike for other stores, those who open a new one at its path are not
// told, because every user could give them that sign. A program like sqlite3 that was the
// last to close the database deletes its log: MakeSystem makes it again.
//
// A backup must go through SQLite: a program that holds an Engine must not
// open and close the database file itself, since closing it drops SQLite's
// file locks.
//
// A process that is stopped (SIGSTOP) in the few microseconds of a write keeps
// the others from writing until it goes on or dies; their requests then fail
// with driver.ErrUnavailable after five seconds, and holders are told of the
// loss in time.
//
// # Durability
//
// A commit survives the death of any process, at any instant. It is not
// flushed to the disk (PRAGMA synchronous=NORMAL), so a power cut may take
// back the latest commits; that is harmless to exclusion, because a reboot
// ends all leases, and to tokens, because they follow the wall clock: a token
// is greater than a lost one as long as the clock after the power cut is not
// behind the clock before it. A record is flushed before Complete returns, and
// what happens to a one-time token before its request is answered, so that no
// payload is handed out twice.
//
// # One-time tokens
//
// They last as records do, see Clocks. They go with Prune, which somebody must
// call: package onetime does. A payload is stored as it is, for whoever can
// read the file; the database does not know the secrets. A payload that is
// deleted is overwritten in the database file (PRAGMA secure_delete). A copy can
// stay in the write-ahead log until that is written over, or until the last
// engine is closed, and then in what the file system has freed.
//
// # Versions
//
// Open refuses a database whose schema has a number that it does not know, and
// leaves it as it is.
//
// # Concurrency
//
// An Engine is safe for concurrent use, and any number of engines in any
// number of processes may be open on one file. Requests of an engine that wait for
// each other, or for another process, go together in one transaction, in the order
// in which they came; the failure of one leaves the others as they are.
//
// The first request that gets a place in a queue starts the listener to the bell,
// and the first lease that a client holds for longer than driver.LossStart starts
// that to the alarm. Close ends both and waits for them.
//
// # Rooms
//
//	open.go                     Open, OpenURL: which path may be a lock database
//	files.go                    that all who come by a path have the same files
//	system.go, system_make.go, system_other.go
//	                            the store that all users of a host share: how it is
//	                            made, and known by its files
//	system_schema.go            nothing runs in it but what is ours
//	witness_*.go                how they tell even after these were deleted
//	access_*.go, identity_*.go, mount_*.go
//	                            what the systems say of files
//	schema.go, schema.sql       the tables, and whose database it is
//	clock.go, clock_*.go        the boot-time clock of each system
//	engine.go                   Engine, Close
//	conn.go                     a connection, and its statements
//	statements.go               all SQL but the schema
//	tx.go                       one request that writes, or reads; waiting for others
//	group.go                    the transactions: requests that wait go together
//	errors.go                   what SQLite's errors mean
//	view.go                     what a request sees of a name, for package rules
//	queue.go                    settle, purge and serve; places
//	acquire.go                  Acquire, AcquireAll
//	release.go                  Extend, Release, Downgrade
//	refresh.go                  Refresh
//	record.go, vault.go         do-once records; one-time tokens
//	break.go                    Break, Breaks
//	history.go, feed.go         History, OnEvent
//	inspect.go, list.go         what people are shown
//	watch.go                    who is told, in this process
//	bell.go, listen.go          who is told in other processes, and hears it
//	alarm.go                    the same for leases that were broken
//	stint.go, pause_*.go        processes that give way to each other
//	sweep.go                    what is over goes away
//	diagnose.go, diagnose_*.go  whether the file is fit for locks
package sqlitelock
