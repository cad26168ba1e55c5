// Package wire has the JSON for people and programs: locks, holders, places, breaks,
// events, diagnoses and refusals, as the command prints them with --json and the server
// sends them over HTTP, and the codes of errors. Engines over HTTP have a protocol of
// their own: docs/adr/0031.
//
// # Conventions
//
// Names are in snake_case. Durations are whole milliseconds, in fields that end in _ms;
// null means that there is none. A fencing token is there twice: as a number and, with
// _str, as text for readers without 64-bit integers. A list is an array, and [] if it is
// empty. Locks are described without lease IDs, because a lease ID can release the lease.
//
// # What it needs
//
// Package driver and nothing else of this module: an engine over HTTP reads this JSON and
// must not need the client library. The codes of the library's own errors are in
// internal/codes, and package internal/view converts the library's types. Package wire
// does not need net/http, which the command would load at each start.
package wire
