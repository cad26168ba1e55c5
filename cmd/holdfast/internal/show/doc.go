// Package show formats the output of the command for people: locks, histories and errors in
// words, tables, and the line that shows a wait.
package show
