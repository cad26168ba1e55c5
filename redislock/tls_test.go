package redislock

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestTLS opens a server that requires TLS and a certificate, with right and wrong options.
func TestTLS(t *testing.T) {
	server, files := testsvc.RedisTLS(t)
	_, others := testsvc.RedisTLS(t)
	broken := filepath.Join(t.TempDir(), "broken.pem")
	if err := os.WriteFile(broken, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := url.Values{"tls_ca": {files.CA}, "tls_cert": {files.Cert}, "tls_key": {files.Key}}
	with := func(changes ...string) string {
		q := url.Values{}
		for name, values := range good {
			q[name] = values
		}
		for i := 0; i < len(changes); i += 2 {
			if changes[i+1] == "" {
				q.Del(changes[i])
			} else {
				q.Set(changes[i], changes[i+1])
			}
		}
		return server.URL + "?" + q.Encode()
	}
	for name, c := range map[string]struct {
		url  string
		want error
	}{
		"right":                      {with(), nil},
		"right, another name":        {with("tls_server_name", "redis.test"), nil},
		"a name it does not have":    {with("tls_server_name", "other.test"), driver.ErrUnavailable},
		"signed by somebody else":    {with("tls_ca", others.CA), driver.ErrUnavailable},
		"signed by nobody we know":   {with("tls_ca", ""), driver.ErrUnavailable},
		"without our certificate":    {with("tls_cert", "", "tls_key", ""), driver.ErrUnavailable},
		"with another's certificate": {with("tls_cert", others.Cert, "tls_key", others.Key), driver.ErrUnavailable},
		"without TLS":                {"redis://" + server.Addr, driver.ErrUnavailable},
		"half of a certificate":      {with("tls_key", ""), driver.ErrInvalid},
		"a key of another":           {with("tls_key", others.Key), driver.ErrInvalid},
		"an authority not in PEM":    {with("tls_ca", broken), driver.ErrInvalid},
		"an authority that is not":   {with("tls_ca", broken+"x"), driver.ErrInvalid},
		"parameters without TLS":     {"redis://" + server.Addr + "?tls_ca=" + files.CA, driver.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Open(t.Context(), c.url)
			wantIs(t, "open", err, c.want)
			if err == nil {
				drivertest.Cycle(t, e, "a")
				_ = e.Close()
			}
		})
	}
}

// TestURL checks the connections of a URL, as the server sees them.
func TestURL(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL+"/3?client_name=billing")
	drivertest.Granted(t, e, drivertest.Request("a", drivertest.Patience))
	admin := plain(t, server)
	do(t, admin, "SELECT 3")
	if text(t, admin, "GET a") == "" {
		t.Error("the lock is not in the database that the URL names")
	}
	list := text(t, admin, "CLIENT LIST")
	if !strings.Contains(list, "name=billing") {
		t.Errorf("no connection has the name that the URL gives:\n%s", list)
	}
}

// TestURLForms checks which URLs are refused before anything is dialled.
func TestURLForms(t *testing.T) {
	for _, good := range []string{
		"redis://h", "redis://h:1/2", "redis://[::1]:1", "rediss://u:p%40@h",
		"redis+sentinel://h/master", "redis+sentinel://h1,h2:2,[::1]:3/master/4?prefix=a:&sentinel_user=u&sentinel_password=p",
		"rediss+sentinel://:p@h1,h2/master", "redis+cluster://h1:1,h2:2", "rediss+cluster://u:p@h1,h2?prefix=x",
		"valkey://h", "valkeys://u:p@h:1/2", "valkey+sentinel://h/master", "valkeys+sentinel://h1,h2/master/3", "valkey+cluster://h1,h2",
		"valkeys+cluster://h", "redis+unix:///a.sock", "redis+unix://u:p%40@/run/a%20b.sock?db=1&prefix=x", "valkey+unix:///run/valkey.sock",
		"redis://h?token_memory=1h", "redis+cluster://h?token_memory=1m",
	} {
		if _, _, err := parseURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"redis://h1,h2", "redis+sentinel://h", "redis+sentinel://h/", "redis+sentinel://h/m/x", "redis+sentinel://h/m/1/2",
		"redis+sentinel:///m", "redis+sentinel://h1,,h2/m", "redis+cluster://h/1", "redis+cluster://", "redis+cluster://h1:x,h2",
		"redis+cluster://h?sentinel_user=u", "redis+other://h", "redis+sentinel://h1,u@h2/m", "redis://h?client_name=a%20b",
		"valkeyx://h", "xvalkey://h", "valkey://h1,h2", "redis+unix://h/a.sock", "redis+unix://run/a.sock", "redis+unix:///", "redis+unix:///a/",
		"redis+unix://", "rediss+unix:///a.sock", "valkeys+unix:///a.sock", "redis+unix:///a.sock?db=x", "redis+unix:///a.sock?db=-1",
		"redis+unix:///a.sock?db=", "redis://h?db=1", "redis+unix://u@/a.sock", "redis+unix:///a.sock?tls_ca=x",
		"redis+unix:///a%00b",
		"redis://h?token_memory=", "redis://h?token_memory=1", "redis://h?token_memory=0", "redis://h?token_memory=59s", "redis://h?token_memory=8761h",
		"redis://h?token_memory=-1h",
	} {
		_, _, err := parseURL(bad)
		wantIs(t, bad, err, driver.ErrInvalid)
	}
}
