package pglock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

const secret = "s3cr3t"

// TestURL checks that our parameters become options, that those of libpq and the pool keep their
// meaning, and that no environment variable decides which store is used.
func TestURL(t *testing.T) {
	for name, value := range map[string]string{
		"PGHOST": "wrong.test", "PGPORT": "1", "PGDATABASE": "wrong", "PGPASSWORD": "wrong", "PGTARGETSESSIONATTRS": "standby",
	} {
		t.Setenv(name, value)
	}
	config, opts, err := parseURL("POSTGRESQL://app@db.test?schema=a%20b&history=1&install=off&token_memory=2h&pool_max_conns=7&listen=postgres%3A%2F%2Fh%2Fdb")
	if err != nil {
		t.Fatal(err)
	}
	want := Options{Schema: "a b", History: true, NoInstall: true, TokenMemory: 2 * time.Hour, Listen: "postgres://h/db"}
	if c := config.ConnConfig; opts != want || config.MaxConns != 7 || c.Host != "db.test" || c.Port != 5432 || c.Database != "" || c.Password != "" || c.ValidateConnect != nil {
		t.Errorf("%+v, %s:%d/%s as %s by %q", opts, c.Host, c.Port, c.Database, c.User, c.Password)
	}
	if len(config.ConnConfig.RuntimeParams) != 0 {
		t.Errorf("a pooler may refuse %v", config.ConnConfig.RuntimeParams)
	}
	several, _, err := parseURL("postgres://u:p%40w@[::1]:2,h/db?history=0")
	if err != nil || several.ConnConfig.Password != "p@w" || several.ConnConfig.Port != 2 || several.ConnConfig.ValidateConnect == nil {
		t.Errorf("%+v, %v", several, err)
	}
}

// TestURLFiles checks a password from a passfile, and a whole configuration from a service.
func TestURLFiles(t *testing.T) {
	t.Setenv("PGPASSWORD", "wrong")
	dir := t.TempDir()
	passfile, services := filepath.Join(dir, "pass"), filepath.Join(dir, "services")
	for path, text := range map[string]string{
		passfile: "h:5432:db:app:" + secret + "\n",
		services: "[locks]\nhost=s.test\nport=6000\ndbname=d\nuser=u\npassword=" + secret + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, _, err := parseURL("postgres://app@h/db?passfile=" + passfile)
	if err != nil || config.ConnConfig.Password != secret {
		t.Errorf("passfile: %v, %v", config, err)
	}
	config, _, err = parseURL("postgres://?service=locks&servicefile=" + services)
	if err != nil || config.ConnConfig.Password != secret || config.ConnConfig.Host != "s.test" || config.ConnConfig.Port != 6000 {
		t.Errorf("service: %v, %v", config, err)
	}
}

// TestURLRefuses checks that the error for a wrong URL shows what to write, and never contains a
// password, wherever in the URL it was.
func TestURLRefuses(t *testing.T) {
	for rawURL, says := range map[string]string{
		"postgres:h":                                        "want postgres://user@host:port/database",
		"mysql://h/db":                                      "want postgres://user@host:port/database",
		"postgres://":                                       "it names no host",
		"postgres:///db":                                    "it names no host",
		"postgres://u:" + secret + "@/db":                   "it names no host",
		"postgres://u:p@" + secret + "@h/db":                "it is malformed",
		"postgres://u:p/" + secret + "@h/db":                "it is malformed",
		"postgres://u:p?" + secret + "=1@h/db":              "it is malformed",
		"postgres://u:p#" + secret + "@h/db":                "it is malformed",
		"postgres://u:%zz" + secret + "@h/db":               "it is malformed",
		"postgres://u:" + secret + " @h/db":                 "it is malformed",
		"postgres://u:" + secret + "\n@h/db":                "it is malformed",
		"postgres://u:" + secret:                            "invalid port",
		"postgres://h:1,i:2,j:" + secret + "/db":            "invalid port",
		"postgres://h/db?" + secret + "=1":                  "it has an unknown parameter; see",
		"postgres://h/db?sslmod=require":                    `it has an unknown parameter "sslmod"`,
		"postgres://h/db?search_path=x":                     `it has an unknown parameter "search_path"`,
		"postgres://u:" + secret + "@h/db?sslmode=maybe":    "sslmode is invalid",
		"postgres://u:" + secret + "@h/db?sslrootcert=/no":  "open /no: no such file",
		"postgres://u:" + secret + "@h/db?port=x":           "invalid port",
		"postgres://h/db?password=" + secret + "&port=x":    "invalid port",
		"postgres://u:" + secret + "@h/db?pool_max_conns=0": "pool_max_conns too small",
		"postgres://u:" + secret + "@h?service=none":        "service",
		"postgres://h/db?history=yes":                       "parameter history: want 1 or 0",
		"postgres://h/db?install=no":                        "parameter install: want on or off",
		"postgres://h/db?history=1&history=1":               "parameter history: want one value",
		"postgres://h/db?schema=":                           "parameter schema: want one value",
		"postgres://h/db?schema=a%24b":                      "parameter schema: want the name of a schema",
		"postgres://h/db?schema=a%0Ab":                      "parameter schema: want the name of a schema",
		"postgres://h/db?schema=it's":                       "parameter schema: want the name of a schema",
		"postgres://h/db?schema=a%FF":                       "parameter schema: want the name of a schema",
		"postgres://h/db?token_memory=1ms":                  "parameter token_memory: want 1s to 8760h",
		"postgres://h/db?token_memory=long":                 "parameter token_memory: want a duration",
		"postgres://h/db?target_session_attrs=standby":      "want read-write, primary or any",
	} {
		_, _, err := parseURL(rawURL)
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v: want ErrInvalid with %q", rawURL, err, says)
		}
	}
	_, err := Open(t.Context(), "postgres://h/db?listen=postgres%3A%2F%2Fu%3A"+secret+"%2F%40h")
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "listen: ") || strings.Contains(err.Error(), secret) {
		t.Errorf("listen: %v", err)
	}
}
