// Package mutant is a set of faults that are put into the product on purpose,
// one at a time, and of the tests that must find each.
//
//	cd systest && go test -tags mutants ./mutant                # all of them
//	cd systest && go test -tags mutants ./mutant -only NAME -v  # one
//
// A fault never enters the tree: the go command builds the tests with an
// overlay, a list of files to read in place of others. Without the tag the
// tests here only check that the set fits the product as it is, and that
// docs/track-record.md says the same as the set.
package mutant
