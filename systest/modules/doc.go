// Package modules tests which modules and packages a program that uses holdfast downloads and
// links. It packs the modules as a release does, and builds small programs from these modules
// alone, without the workspace.
package modules
