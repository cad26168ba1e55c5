package caller_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// TestUsers checks that the kernel identifies a caller that connects to a unix socket.
func TestUsers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "callers.json")
	write(t, path,
		fmt.Sprintf(`{"name":"us","uid":%d,"prefixes":[""],"rights":["read"]}`, os.Geteuid()),
		`{"name":"others","uid":4711,"prefixes":[""],"rights":["read"]}`, entry("secret", "ci", ""))
	f, err := caller.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ network, address, token, want string }{
		{"unix", filepath.Join(dir, "s"), "", "us true"},
		{"unix", filepath.Join(dir, "s2"), "secret", "ci true"},
		{"unix", filepath.Join(dir, "s3"), "wrong", "nobody true"},
		{"tcp", "127.0.0.1:0", "", "nobody false"},
	} {
		l, err := net.Listen(c.network, c.address)
		if err != nil {
			t.Fatal(err)
		}
		h := &http.Server{ConnContext: caller.ConnContext, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name := "nobody"
			if got, err := f.Identify(r); got != nil && err == nil {
				name = got.Name
			}
			fmt.Fprint(w, name, " ", caller.OverUnix(r))
		})}
		go h.Serve(l) // ends when h is closed
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial(c.network, l.Addr().String())
		}}}
		r, _ := http.NewRequest(http.MethodGet, "http://locks/", nil)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(resp.Body); string(got) != c.want {
			t.Errorf("%s with the token %q: %s, want %s", c.network, c.token, got, c.want)
		}
		resp.Body.Close()
		client.CloseIdleConnections()
		h.Close()
	}
}
