package pglock

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/codeblock"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestPage checks docs/postgres.md: with the rights it shows, a user can do all that locks need,
// and hold a lock in a transaction; the server accepts the settings, and Open the URL.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	server := testsvc.Postgres(t)
	execute(t, server, "postgres", `CREATE ROLE app LOGIN`, "CREATE SCHEMA holdfast;"+sqlFile(tablesFile)+functionsSQL())
	blocks, _ := codeblock.Find("postgres.md", string(text)) // archtest reports the problems
	settings, urls, grants := 0, 0, 0
	for _, b := range blocks {
		switch {
		case b.CheckedBy != "TestPage":
		case b.Kind == "sql":
			execute(t, server, "postgres", b.Text)
			grants++
		case strings.HasPrefix(b.Text, "postgres://"):
			config, opts, err := parseURL(strings.TrimSpace(b.Text))
			if err != nil || config.ConnConfig.Port != 6432 || opts.Listen != "postgres://app@db:5432/billing" {
				t.Errorf("%s: %+v, %v", b.At(), opts, err)
			}
			urls++
		default:
			server.Configure(strings.Split(b.Text, "\n")...)
			if bad := server.Query(`SELECT name, error FROM pg_file_settings WHERE error IS NOT NULL AND name LIKE 'synchronous%'`); bad != "" {
				t.Errorf("%s: %s", b.At(), bad)
			}
			server.Configure("synchronous_standby_names = ''")
			settings++
		}
	}
	if settings != 1 || urls != 1 || grants != 1 {
		t.Errorf("the page has %d settings, %d URLs and %d lists of rights, want one of each", settings, urls, grants)
	}
	engine := open(t, urlOf(server, "app", "postgres", "&install=off&history=1"))
	p := &program{engine: engine, server: server, pool: engine.main}
	l, tx := p.begin(t, "page", time.Minute)
	drivertest.Release(t, engine, l.req)
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	for what, call := range drivertest.Calls(t.Context(), engine, "calls") {
		if err := call(); errors.Is(err, driver.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
