// Package fencetest has the tests of package fence on real PostgreSQL, MariaDB and SQLite
// databases. The root module's tests cannot import drivers for them. The package has tests
// only and is never released.
package fencetest
