// Package sqlfence guards SQL databases: PostgreSQL, MySQL, MariaDB and SQLite,
// through any driver for database/sql. See package fence for the rule and the
// two verbs.
//
//   - [Dialect.Advance] is the first statement of a transaction and does both
//     verbs: nothing else is needed in that transaction. It keeps its marks in
//     the table holdfast_fence, which [Dialect.Migrate] creates.
//   - [Dialect.CheckRow] is for rows that carry the token in a column of their
//     own.
//
// All functions and methods are safe for concurrent use, as far as what they
// are given is: one *sql.Tx belongs to one goroutine.
package sqlfence
