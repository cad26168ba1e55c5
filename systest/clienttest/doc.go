// Package clienttest has the tests of examples/clients: they run the clients, in Python,
// JavaScript, Java and shell, against real servers.
package clienttest
