//go:build unix

package stores

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/pglock"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/sqlitelock"
)

// TestOpen checks that each kind of URL opens a store of its kind, and that a lock can be acquired
// there.
func TestOpen(t *testing.T) {
	dir, err := os.MkdirTemp("", "stores") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	redis := testsvc.Redis(t, "--unixsocket", socket)
	postgres := testsvc.Postgres(t)
	three := strings.Join([]string{redis.Addr, testsvc.Redis(t).Addr, testsvc.Redis(t).Addr}, ",")
	tls, files := testsvc.RedisTLS(t)
	plain, secure, unix := served(t, filepath.Join(dir, "holdfast.sock"))
	certificates := "?tls_ca=" + files.CA + "&tls_cert=" + files.Cert + "&tls_key=" + files.Key
	for rawURL, is := range map[string]func(driver.Engine) bool{
		"memory:":           isA[*memlock.Engine],
		"memory:?history=1": remembers,
		"sqlite://" + filepath.Join(dir, "history.db") + "?history=1": remembers,
		"sqlite://" + filepath.Join(dir, "locks.db"):                  isA[*sqlitelock.Engine],
		postgres.URL: isA[*pglock.Engine],
		strings.Replace(postgres.URL, "s", "S", 1) + "&history=1&schema=other": remembers,
		"redis://" + redis.Addr:                     isA[*redislock.Engine],
		"VALKEY://" + redis.Addr + "/1?prefix=a:":   isA[*redislock.Engine],
		"redis+unix://" + socket + "?db=3":          isA[*redislock.Engine],
		"rediss://" + tls.Addr + certificates:       isA[*redislock.Engine],
		"valkeys://" + tls.Addr + certificates:      isA[*redislock.Engine],
		testsvc.Sentinel(t).URL:                     isA[*redislock.Engine],
		testsvc.RedisCluster(t).URL:                 isA[*redislock.Engine],
		"quorum+redis://" + three + "/4?max_ttl=1m": isA[*quorumlock.Engine],
		plain:  isA[*httplock.Engine],
		secure: isA[*httplock.Engine],
		unix:   isA[*httplock.Engine],
		"Quorum+Valkey://" + three + "/6?max_ttl=1m&prefix=b": isA[*quorumlock.Engine],
	} {
		engine, err := Open(t.Context(), rawURL)
		if err != nil || !is(engine) {
			t.Errorf("%s: %T, %v", rawURL, engine, err)
			continue
		}
		if err := takeOnce(t.Context(), engine); err != nil {
			t.Errorf("%s: %v", rawURL, err)
		}
	}
}

// served starts three holdfast servers, and returns their URLs.
func served(t *testing.T, socket string) (plain, secure, unix string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := server.New(mem.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	some := [3]*httptest.Server{}
	for i := range some {
		some[i] = httptest.NewUnstartedServer(handler)
		t.Cleanup(some[i].Close)
	}
	some[0].Start()
	some[1].StartTLS()
	some[2].Listener = listener
	some[2].Start()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: some[1].Certificate().Raw}
	if err := os.WriteFile(authority, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return some[0].URL, some[1].URL + "?ca_file=" + authority, "http+unix://" + socket
}

func isA[E driver.Engine](engine driver.Engine) bool {
	_, ok := engine.(E)
	return ok
}

func remembers(engine driver.Engine) bool { return engine.Capabilities().History }

// takeOnce acquires and releases a lock, and closes the client and the engine.
func takeOnce(ctx context.Context, engine driver.Engine) error {
	if quorum, ok := engine.(*quorumlock.Engine); ok { // the servers are new
		if err := quorum.Admit(ctx); err != nil {
			return err
		}
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		return err
	}
	lease, err := client.Acquire(ctx, "job", nil)
	if err == nil {
		err = lease.Release(ctx)
	}
	return errors.Join(err, client.Close(), engine.Close())
}

// TestOpenRefuses checks that the error for a wrong URL contains the supported kinds or the
// problem, and no password.
func TestOpenRefuses(t *testing.T) {
	const secret = "s3cret"
	for rawURL, says := range map[string]string{
		"":                                       "its URL is empty: use sqlite:///path/file.db, redis://host:port, ",
		secret:                                   "it is not a URL: use sqlite:",
		"p?" + secret + "://h":                   "it is not a URL: use sqlite:",
		"/tmp/locks.db":                          "it is not a URL: use sqlite:",
		"memory:x":                               "want memory: or memory:?history=1",
		"memory:?history=1&history=1":            "want memory: or memory:?history=1",
		"memory:?history=yes":                    "want memory: or memory:?history=1",
		"memory:?prefix=" + secret:               "want memory: or memory:?history=1",
		"ftp://u:" + secret + "@h":               `unknown scheme "ftp": use sqlite:`,
		"xvalkey://h1":                           `unknown scheme "xvalkey": use sqlite:`,
		"http://u:" + secret + "@h":              "it names a user: write the token behind a colon",
		"http://:" + secret + "/@h":              "it is malformed; write special characters",
		"HTTPS://:" + secret + "@h?prefix=a":     "it has an unknown parameter",
		"http://:" + secret + "@":                "it names no host",
		"http://h,":                              "it names no host",
		"https://h?ca_file=/no/one":              "ca_file: open /no/one",
		"http://h?ca_file=/no/one":               "ca_file is for https",
		"http+unix://h/a.sock":                   "with three slashes",
		"http+unix://":                           "with three slashes",
		"postgres://u:" + secret + "/@h/db":      "it is malformed; write special characters",
		"postgresql://h/db?prefix=" + secret:     "it has an unknown parameter",
		"mysql://u:" + secret + "@h/db":          "this version keeps no locks in mysql: use sqlite:",
		"etcd://h":                               "this version keeps no locks in etcd: use sqlite:",
		"redis+sentinel://h":                     "the name of the master",
		"redis://h1,h2":                          "it names several hosts",
		"valkey://h1,h2":                         "it names several hosts",
		"redis://u:" + secret + "/@h":            "it is malformed; write special characters",
		"redis://h?password=" + secret:           "it has an unknown parameter",
		"redis+unix://h/a.sock":                  "with three slashes",
		"rediss+unix:///a.sock":                  "a unix socket has no TLS",
		"redis+cluster://h/1":                    "a cluster has no other databases",
		"rediss://h?tls_ca=/no/one":              "tls_ca: open /no/one",
		"quorum+redis://u:" + secret + "@h1,h2":  "it names 2: a quorum takes at least 3 servers",
		"quorum+valkey://h1,h2,h3,h4":            "an even number survives no more losses than 3",
		"quorum+redis://h,i,H:6379":              "the hosts 1 and 3 are the same",
		"quorum+redis://a,b,c?max_ttl=" + secret: "max_ttl: want one duration, such as 5m",
		"quorum+redis:a,b,c":                     "want quorum+redis://host1:port,host2:port,host3:port",
		"quorum+redis+unix:///a,/b":              "a quorum of sockets",
		"quorum+redis://a,b,c/x":                 "the path must be the number of a database",
		"sqlite://relative":                      "with three slashes",
		"sqlite://u:" + secret + "@h/%zz":        "it is malformed; write special characters",
	} {
		engine, err := Open(t.Context(), rawURL)
		if engine != nil || !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret) {
			t.Errorf("Open(%q) = %v, %v: want ErrInvalid with %q", rawURL, engine, err, says)
		}
	}
}

// TestOpenFails checks that an unreachable store and a store that refuses access have different
// errors, that the context bounds Open, and that a quorum can be opened without its servers.
func TestOpenFails(t *testing.T) {
	server := testsvc.Redis(t, "--requirepass", "pw")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	_ = listener.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx    context.Context
		rawURL string
		want   error
	}{
		{t.Context(), "redis://u:s3cret@" + nobody, driver.ErrUnavailable},
		{t.Context(), "redis://:s3cret@" + server.Addr, driver.ErrPermission},
		{t.Context(), "postgres://u:s3cret@" + nobody + "/db", driver.ErrUnavailable},
		{t.Context(), "sqlite:///no/such/directory/locks.db", driver.ErrInvalid},
		{t.Context(), "http://:s3cret@" + nobody, driver.ErrUnavailable},
		{t.Context(), "https://:s3cret@" + nobody + "," + nobody, driver.ErrUnavailable},
		{t.Context(), "http+unix:///no/such/holdfast.sock", driver.ErrUnavailable},
		{t.Context(), "http://:s3cret@" + server.Addr, driver.ErrUnavailable}, // speaks another protocol
		{ended, "http://" + nobody, context.Canceled},
		{ended, "redis://:pw@" + server.Addr, context.Canceled},
		{ended, "sqlite://" + filepath.Join(t.TempDir(), "locks.db"), context.Canceled},
	} {
		engine, err := Open(c.ctx, c.rawURL)
		if engine != nil || !errors.Is(err, c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Open(%q) = %v, %v: want %v", c.rawURL, engine, err, c.want)
		}
	}
	quorum, err := Open(t.Context(), "quorum+redis://"+nobody+",127.0.0.1:1,127.0.0.1:2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := quorum.Inspect(t.Context(), "job"); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("a quorum without servers: %v", err)
	}
	if err := quorum.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzOpen checks that no URL causes a panic, and that no error contains a password. The context
// has ended, so that Open does not dial.
func FuzzOpen(f *testing.F) {
	for _, scheme := range []string{
		"redis", "rediss", "valkey", "VALKEYS", "redis+sentinel", "redis+cluster", "redis+unix", "sqlite", "memory", "http", "https", "http+unix", "postgres",
		"quorum+redis", "quorum+valkeys", "quorum+redis+unix", "x", "", "p@ss", "a:b",
	} {
		for _, rest := range []string{"h:1/2?prefix=x", "h,i,j:3?max_ttl=1m", "[::1]/m?sentinel_user=u", "/a/b.sock?db=1", "h/%zz", "h#f", "h?a;b", ""} {
			f.Add(scheme, "u", "pw", rest)
			f.Add(scheme, "", "/@?", rest)
		}
	}
	f.Add("sqlite", "?", "0", "0")
	f.Fuzz(func(t *testing.T, scheme, user, password, rest string) {
		if strings.Contains(rest+user+password, "tls_") || strings.HasPrefix(user, "/") {
			return // these name files: all files may be named in errors, and some are devices
		}
		const mark = "s3cretW0rd"
		ended, end := context.WithCancel(context.Background())
		end()
		separator := "?"
		if strings.Contains(rest, "?") {
			separator = "&"
		}
		for _, rawURL := range []string{
			scheme + "://" + user + ":" + password + mark + password + "@" + rest,
			scheme + ":" + user + ":" + mark + "@" + rest,
			scheme + "://" + rest + separator + "sentinel_password=" + mark + password,
		} {
			engine, err := Open(ended, rawURL)
			if err == nil {
				_ = engine.Close()
			} else if strings.Contains(err.Error(), mark) {
				t.Errorf("Open(%q) tells: %v", rawURL, err)
			}
			if public := storeurl.Public(rawURL); strings.Contains(public, mark) {
				t.Errorf("storeurl.Public(%q) = %q", rawURL, public)
			} else if storeurl.HasPassword(rawURL) && !storeurl.HasCredentials(rawURL) || public != rawURL && !storeurl.HasCredentials(rawURL) && storeurl.Public(public) != public {
				t.Errorf("%q: HasPassword %t, HasCredentials %t, Public %q", rawURL, storeurl.HasPassword(rawURL), storeurl.HasCredentials(rawURL), public)
			}
			if !storeurl.Same(rawURL, rawURL) {
				t.Errorf("%q is not the same store as itself", rawURL)
			}
		}
	})
}
