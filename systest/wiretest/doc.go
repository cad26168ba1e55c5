// Package wiretest has the tests of the engine over HTTP that need real servers: the
// conformance suite on Redis with servers of holdfast in between, what goes over the
// network, and how long it takes.
package wiretest
