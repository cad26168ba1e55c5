package storeurl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPublic checks that the public form of a URL opens the same store and contains no password.
func TestPublic(t *testing.T) {
	for in, want := range map[string]string{
		"sqlite:///var/lib/locks.db":     "sqlite:///var/lib/locks.db",
		"memory:":                        "memory:",
		"redis://h:1/2?prefix=a%20b":     "redis://h:1/2?prefix=a%20b",
		"redis://:secret@h":              "redis://h",
		"rediss://u:secret@h:1?tls_ca=x": "rediss://h:1?tls_ca=x",
		"redis+cluster://u:secret@h1,h2": "redis+cluster://h1,h2",
		"redis+sentinel://u:secret@h1:1,h2/m?sentinel_user=s&sentinel_password=secret&prefix=p": "redis+sentinel://h1:1,h2/m?prefix=p",
		"redis://u:se@cret@h": "redis://h",
		"valkey://:secret@h":  "valkey://h",
		"valkeys+sentinel://u:secret@h1,h2/m?sentinel_password=secret": "valkeys+sentinel://h1,h2/m",
		"redis+unix://u:secret@/run/redis.sock?db=1":                   "redis+unix:///run/redis.sock?db=1",
		"quorum+valkey://u:secret@h1,h2,h3/2":                          "quorum+valkey://h1,h2,h3/2",
		"quorum+redis://u:secret@h1:1,h2,h3/2?prefix=p&max_ttl=1m":     "quorum+redis://h1:1,h2,h3/2?prefix=p&max_ttl=1m",
		"redis://h?password=secret&prefix=p":                           "redis://h?prefix=p", // Open refuses it
		"redis+sentinel://h/m?sentinel%5Fpassword=secret":              "redis+sentinel://h/m",
		"redis://h?client_name=c&prefix=p?password=secret":             "redis://h?client_name=c",
		"sqlite:///a@b/c.db":                                           "sqlite:///a@b/c.db",
		"postgres://u:secret@h/db":                                     "postgres://h/db",
		"postgres://u:secret@h1:1,h2/db?schema=s&sslpassword=secret":   "postgres://h1:1,h2/db?schema=s",
		"postgres://h/db?listen=postgres%3A%2F%2Fu%3Asecret%40i%2Fdb":  "postgres://h/db",
		"https://:secret@h1:7420,h2/locks?ca_file=/x":                  "https://h1:7420,h2/locks?ca_file=/x",
		"http+unix://:secret@/run/holdfast.sock":                       "http+unix:///run/holdfast.sock",
	} {
		if got := Public(in); got != want {
			t.Errorf("Public(%q) = %q, want %q", in, got, want)
		}
	}
	for _, malformed := range []string{"quorum+redis://u:p/secret@h,h2,h3", "quorum+redis://u:p?secret@h1,h2"} {
		if got := Public(malformed); got != "quorum+redis:" {
			t.Errorf("Public(%q) = %q, want the scheme only", malformed, got)
		}
	}
	for _, malformed := range []string{"redis://u:%zz@h/%zz", "redis:secret@h", "redis://u:p/secret@h", "redis://u:p?secret@h",
		"redis://h?sentinel_password=se;cret", "redis://h?sentinel_password=secret%zz", "redis://h#sentinel_password=secret"} {
		if got := Public(malformed); got != "redis:" {
			t.Errorf("Public(%q) = %q, want the scheme only", malformed, got)
		}
	}
	for _, malformed := range []string{"valkey://u:p/secret@h", "VALKEY://u:p/secret@h", "redis+unix://u:p/secret@/run/redis.sock",
		"https://u:p/secret@h", "sqlite://u:p/secret@h", "s3cret!secret://h", "sec/ret:secret"} {
		if got := Public(malformed); strings.Contains(got, "secret") {
			t.Errorf("Public(%q) = %q", malformed, got)
		}
	}
}

// TestSame checks which URLs name the same store.
func TestSame(t *testing.T) {
	dir := t.TempDir()
	for path, to := range map[string]string{"link": dir, "f.db": "elsewhere.db"} {
		if err := os.Symlink(to, filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "elsewhere.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, same := range [][2]string{
		{"redis://h", "redis://H:6379/0"},
		{"redis://h/", "rediss://h?tls_ca=/x&client_name=y"},
		{"redis+sentinel://a,b/m", "redis+sentinel://b:26379,a/m"},
		{"quorum+redis://a,b,c?max_ttl=1m", "quorum+redis://c,b:6379,a"},
		{"redis://[::1]", "redis://[::1]:6379"},
		{"redis://h?prefix=a", "redis://h?client_name=c&prefix=a"},
		{"sqlite://" + dir + "/f.db", "sqlite://" + dir + "/link/./elsewhere.db"},
		{"redis+sentinel://a,b/m", "valkeys+sentinel://a,b/m"},
		{"redis+unix://" + dir + "/f.db?client_name=x&db=0", "valkey+unix://" + dir + "/link/elsewhere.db"},
		{"memory:", "memory:"},
		{"http://a,b:7420/", "HTTP://B:7420,a:80"},
		{"https://a:7420?ca_file=/x", "http://a:7420"},
		{"http+unix://" + dir + "/f.db", "http+unix://" + dir + "/link/elsewhere.db"},
		{"sqlite:///a.db", "sqlite:///a.db?history=1"},
		{"postgres://a,b/db?schema=holdfast", "postgresql://u@B:5432,A/db?sslmode=require"},
		{"postgres:///db?host=/run/postgresql", "postgresql:///db?host=/run/postgresql&history=1"},
	} {
		if !Same(same[0], same[1]) {
			t.Errorf("%q are two stores", same)
		}
	}
	for _, other := range [][2]string{
		{"redis://h", "redis://h/1"},
		{"redis://h", "redis://g"},
		{"redis://h", "redis://h:6380"},
		{"redis://h", "redis://h?prefix=a"},
		{"redis://h", "redis+cluster://h"},
		{"redis+sentinel://a/m", "redis+sentinel://a/n"},
		{"quorum+redis://a,b,c", "quorum+redis://a,b,d"},
		{"redis+unix:///a.sock", "redis+unix:///b.sock"},
		{"redis+unix:///a.sock", "redis+unix:///a.sock?db=1"},
		{"redis+unix:///a.sock?prefix=a", "redis+unix:///a.sock"},
		{"sqlite:///a.db", "sqlite:///b.db"},
		{"sqlite:///a.db", "memory:"},
		{"http://a", "https://a"},
		{"http://a:7420", "http://a:7421"},
		{"http://a/one", "http://a/two"},
		{"http+unix:///a.sock", "http+unix:///b.sock"},
		{"postgres://h/a", "postgres://h/b"},
		{"postgres://h/a", "postgres://h:6432/a"},
		{"postgres://h/a", "postgres://h/a?schema=other"},
		{"postgres:///a?host=/run", "postgres:///a?host=/tmp"},
		{"postgres:///a?service=b", "postgres:///a?service=c"},
	} {
		if Same(other[0], other[1]) {
			t.Errorf("%q are one store", other)
		}
	}
}
