// Package modules tests what a program that uses holdfast downloads and links: it packs
// the modules as a release would, and builds small programs from the packages alone,
// without the workspace.
package modules
