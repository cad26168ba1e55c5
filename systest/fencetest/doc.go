// Package fencetest holds the tests of package fence on real PostgreSQL,
// MariaDB and SQLite databases, which the root module's tests cannot import
// drivers for. It contains tests only and is never released.
package fencetest
