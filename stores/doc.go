// Package stores makes clients of every store that holdfast has an engine for, from the URL
// that the command takes in --store.
//
// # What
//
// A program that takes the URL from its configuration can move from a file to a server,
// and from a server to a quorum, without a new line of code. A program that needs only one
// kind of store imports that engine's package instead, and gets only its dependencies;
// docs/internals/modules.md lists them.
//
// # Example
//
//	client, err := stores.Dial(ctx, "redis://localhost:6379", nil)
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//
// # Guarantees
//
// The package of the engine lists its guarantees, with clocks, fencing tokens and the effect
// of a failover.
//
// # What is not promised
//
// That the store is fit for locks: driver.Diagnoser and holdfast doctor check that. That it
// stays reachable: requests after Dial fail if the server goes away.
//
// # Errors
//
// A URL that is malformed, or of a kind that this version does not know, is
// driver.ErrInvalid, and the error lists the known kinds. A store that cannot be
// reached is driver.ErrUnavailable, and one that refuses this user is
// driver.ErrPermission. No error contains a password. A URL that a program shows or
// logs itself may have one.
//
// # Testing
//
// memory: needs no server, and keeps time by the clock of a testing/synctest bubble.
//
// # The URLs
//
//	memory:                                       memlock: this process only, for tests; ?history=1
//	sqlite:///path/file.db                        sqlitelock: the processes of one host
//	redis://host:port[/db]                        redislock: one server
//	redis+unix:///path/redis.sock                 one server of this host, by its socket
//	redis+sentinel://host:port,…/master           the master that sentinels name
//	redis+cluster://host:port,…                   a Redis Cluster
//	quorum+redis://host:port,host:port,host:port  quorumlock: the majority of such servers
//	postgres://user@host:port/database            pglock: a schema of a PostgreSQL database
//	http://host:port, https://host:port           httplock: whatever store a holdfast server has
//	http+unix:///path/holdfast.sock               such a server of this host, by its socket
//
// With rediss for redis the connection has TLS, and valkey and valkeys are other names
// for redis and rediss. Credentials are user:password@ in front of the first host.
// redislock.Open lists the parameters (?prefix=…&tls_ca=…), as do sqlitelock.OpenURL for a
// file, pglock.Open for PostgreSQL, which may be called postgresql, and httplock.Open for a
// holdfast server: several hosts, a token and ca_file. A quorum takes the parameters of
// redislock.Open except history, for all its servers, and also max_ttl:
// quorumlock.Options.MaxTTL. It needs an odd number of servers, 3 or more.
//
// # What Dial and Open do
//
// For a file it opens the database, and creates it in a directory that is there. For
// PostgreSQL it logs in, and creates the schema unless the URL has install=off. For another
// server it connects, logs in and, with sentinels or a cluster, finds out which server is the
// master; it sends no request about a lock. A holdfast server reports the features of its
// store. For a quorum it does nothing yet, so that a quorum can be opened while some or all of
// its servers are down. The context bounds Dial and Open only.
//
// # What comes back
//
// Dial returns a client, whose Close ends all connections, those to the servers of a
// quorum included. Open returns the driver.Engine itself, which the caller closes, or hands
// to holdfast.New. Each memory: is a store of its own.
//
// The Capabilities of an engine are the features of its store: a quorum has exclusive locks
// only, for example, and refuses others with driver.ErrUnsupported. What is not in
// package driver is in the engine's own type, *memlock.Engine, *sqlitelock.Engine,
// *redislock.Engine, *pglock.Engine, *httplock.Engine or *quorumlock.Engine. A type assertion
// gives access to it: for a guard in Redis, for example.
//
// # Which store is meant
//
// Two processes with different stores both get the lock. Dial takes a URL and looks
// nowhere else: it reads no environment, no flag and no configuration file. The command
// has an order in which it looks (docs/choosing.md); a program that is to exclude the
// command's jobs must be given the same URL.
package stores
