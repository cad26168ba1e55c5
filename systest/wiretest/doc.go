// Package wiretest has the tests of the engine over HTTP that need real servers: the
// conformance suite on Redis through holdfast servers, the traffic on the network, and the
// times that requests take.
package wiretest
