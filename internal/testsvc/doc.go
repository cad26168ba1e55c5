// Package testsvc starts real servers for tests, as child processes on free
// ports of 127.0.0.1, and lets a test stop, freeze and restart them.
//
// A server never outlives its test: it is killed by its process ID when the
// test has ended, and on Linux even when the test process dies. A missing
// program fails the test with a line about what to install.
package testsvc
