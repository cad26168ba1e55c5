// Package stores opens every store that holdfast has an engine for by its URL, the
// one that the command takes in --store.
//
// # What
//
// A program that takes the URL from its configuration can move from a file to a server,
// and from a server to a quorum, without a new line of code. A program that needs one
// kind of store only imports that engine's package instead, and gets its dependencies
// only; docs/modules.md lists them.
//
// # Example
//
//	engine, err := stores.Open(ctx, "redis://localhost:6379")
//	if err != nil {
//		return err
//	}
//	defer engine.Close()
//	client, err := holdfast.New(engine, nil)
//
// # Guarantees
//
// They are those of the engine, which adds nothing and hides nothing of itself here:
// see its package for clocks, fencing tokens and what a failover may take back.
//
// # What is not promised
//
// That the store is fit for locks: driver.Diagnoser and holdfast doctor look at that.
// That it stays: a server that goes away shows in the requests after Open.
//
// # Errors
//
// A URL that is malformed, or of a kind that this version does not know, is
// driver.ErrInvalid, and the error says which kinds there are. A store that cannot be
// reached is driver.ErrUnavailable, and one that refuses this user is
// driver.ErrPermission. No error contains a password. A URL that a program shows or
// logs itself may have one: Public leaves it out.
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
//	http://host:port, https://host:port           httplock: whatever store a holdfast server has
//	http+unix:///path/holdfast.sock               such a server of this host, by its socket
//
// With rediss for redis the connection has TLS, and valkey and valkeys are other names
// for redis and rediss. Credentials are user:password@ in front of the first host.
// redislock.Open lists the parameters (?prefix=…&tls_ca=…), sqlitelock.OpenURL that of
// a file, and httplock.Open those of a server of holdfast: several hosts, a token and
// ca_file. A quorum takes those of a server but history, for each of its servers alike,
// and one of its own, max_ttl: quorumlock.Options.MaxTTL. It needs an odd number of
// servers, 3 or more.
//
// # What Open does
//
// For a file it opens the database, and creates it in a directory that is there. For a
// server it connects, logs in and, with sentinels or a cluster, finds out who is the
// master; it sends no request about a lock. A server of holdfast is asked what its store
// can do. For a quorum it does nothing yet, so that
// a quorum can be opened while some or all of its servers are down. The context bounds
// Open, and not what comes after it.
//
// # What comes back
//
// A driver.Engine, and nobody else knows it: the caller closes it, after the
// holdfast.Client on it. Close ends all connections, those to the servers of a quorum
// included. Each Open of memory: is a store of its own.
//
// Its Capabilities say what the store can do: a quorum has exclusive locks only, for
// example, and what it lacks is refused with driver.ErrUnsupported. What is not in
// package driver is in the engine's own type, *memlock.Engine, *sqlitelock.Engine,
// *redislock.Engine, *httplock.Engine or *quorumlock.Engine, to which the interface may be asserted: for
// a guard in Redis, say.
//
// # Which store is meant
//
// Two processes with different stores both get the lock. Open takes a URL and looks
// nowhere else: it reads no environment, no flag and no configuration file. The command
// has an order in which it looks (docs/stores.md); a program that is to exclude the
// command's jobs must be given the same URL. Same tells whether two URLs name one store.
package stores
