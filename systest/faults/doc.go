// Package faults puts faults into the product, one at a time, and checks that the tests
// named with each fault fail.
//
//	cd systest && go test -tags faults ./faults                    # all of them
//	cd systest && go test -tags faults ./faults -only NAME -v      # one
//	cd systest && go test -tags faults ./faults -changed HEAD~1    # of changed packages
//	cd systest && go test ./faults -v -run TestList                # a list in Markdown
//
// The faults of a package are diffs in its folder testdata/faults, in one file for each
// source file. Lines before a diff describe the fault:
//
//	fault: its-name                       unique, lower case
//	breaks: What is wrong, in one sentence.
//	invariant: I4                         of ARCHITECTURE.md; optional
//	found by: TestName                    a test of the same package
//	found by: systest/net TestName/sub    a test of another package
//	may hang                              the symptom is a hang
//	panics: TEXT                          the symptom is a panic that begins like this
//
// The code of the lines that begin with ' ' or '-' must occur in the file exactly once.
// Line numbers are ignored. Indentation, comments and empty lines count only if several
// places have the same code, so a new comment changes no diff.
//
// A fault never enters the tree: the go command builds the tests with an overlay. Without
// the build tag the tests only check that each fault still fits the product.
package faults
