//go:build unix

// Command seats sells the seats of a theatre, to show what a fencing token is
// for: one holder of a lock is stopped until its lease is over, and wakes up
// when somebody else has sold the seat. Its README has the story.
package main
