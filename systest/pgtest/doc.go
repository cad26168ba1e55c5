// Package pgtest tests locks on PostgreSQL servers that crash, fail over to a standby and
// lose it. Its tests are the short form of what a soak does 50 times.
package pgtest
