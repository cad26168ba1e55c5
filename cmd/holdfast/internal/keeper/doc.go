//go:build unix

// Package keeper keeps leases for scripts. A keeper is a process that outlives the
// command that acquired the lease: it renews the lease, releases it when the script
// ends, and sends the script SIGTERM before the lease ends if it cannot be renewed.
//
// Commands of the script reach the keeper, and commands of a job reach holdfast run, over a
// control socket whose path is in HOLDFAST_SOCKET. Only the same user can open it. A connection
// carries one request and its reply, each a line of JSON.
//
// A ticket is a file that describes a lease for a later command of the same user. hold and once
// begin write tickets, because other commands end their leases. A ticket is written before the
// lease is requested, so the lease can be released even if the reply was lost.
package keeper
