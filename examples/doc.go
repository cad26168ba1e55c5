// Package examples is the root of programs that show holdfast at work. Its
// tests run what docs/fencing.md tells its readers to write.
package examples
