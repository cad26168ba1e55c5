// Package lockinfo has the types that describe locks: who holds one, who waits for it,
// and what has happened to it. Package holdfast returns them under names of its own, and
// engines fill them in.
package lockinfo
