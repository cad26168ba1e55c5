// Package examples is the root of programs that show holdfast at work. Its tests run the code of
// docs/fencing.md.
package examples
