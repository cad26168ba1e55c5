// Package modules has the test of what a program downloads and links that uses
// holdfast: it packs the modules as a release would, and makes small programs of
// the packages alone, without the workspace.
package modules
