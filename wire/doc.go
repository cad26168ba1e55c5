// Package wire has the one JSON of holdfast: locks, holders, places, breaks,
// events, diagnoses and refusals, as the command prints them with --json and as
// they go over HTTP, and the codes that stand for errors there.
//
// # Conventions
//
// Names are in snake_case. Durations are whole milliseconds, in fields that
// end in _ms; null is what has no end. A fencing token stands twice, as a
// number and, with _str, as text for readers without 64-bit integers. A list is
// an array, and [] if it is empty. What people and programs are shown of a lock
// has no lease IDs: whoever knows one can release the lease.
//
// # What it needs
//
// Package driver and nothing else of this module: an engine that speaks to a
// server has to read this JSON, and must not need the client library for it. So
// the codes of the library's own errors are in package wire/codes, above it,
// and what is made of a type of the library (an [Event], a [Once]) is made
// where the library is known. Nor does it need net/http, which the command
// would have to load each time it starts; package wire/problem does.
package wire
