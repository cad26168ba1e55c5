//go:build unix

// Command seats sells the seats of a theatre, to show the use of a fencing token: one
// holder of a lock is stopped until its lease has expired, and wakes up after another has
// sold the seat. Its README has the story.
package main
