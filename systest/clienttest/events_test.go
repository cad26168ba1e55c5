//go:build unix

package clienttest

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// eventClients print the lines of compressed events as they arrive, each client in its own way.
// They exit with status 0 only if the stream ended properly.
var eventClients = map[string][]string{
	"curl": {"curl", "-sSN", "--compressed"},
	"python": {"python3", "-c", `
import sys, urllib.request, zlib
r = urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={"Accept-Encoding": "gzip"}))
assert r.headers["Content-Encoding"] == "gzip"
zip = zlib.decompressobj(31)
while chunk := r.read1():
    sys.stdout.write(zip.decompress(chunk).decode())
    sys.stdout.flush()
assert zip.eof and not zip.unused_data`},
	"node": {"node", "-e", `
(async () => {
	const r = await fetch(process.argv[1]);
	if (r.headers.get("Content-Encoding") !== "gzip") throw new Error("not compressed");
	for await (const chunk of r.body) process.stdout.write(chunk);
})();`},
	"go": {os.Args[0]}, // with the environment variable urlOfEvents
}

// urlOfEvents is the environment variable that makes this program a reader of events.
const urlOfEvents = "HOLDFAST_TEST_EVENTS"

// beReader prints the response from url.
func beReader(url string) error {
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if !r.Uncompressed {
		return errors.New("it did not come compressed")
	}
	_, err = os.Stdout.ReadFrom(r.Body)
	return err
}

// TestCompressedEvents checks that clients that accept gzip receive each event when it happens,
// with and without nginx in between, and see the end of the stream when the server drains.
func TestCompressedEvents(t *testing.T) {
	t.Parallel()
	engine := mem.New(&mem.Options{History: true})
	s, err := server.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	defer h.Close()
	locks, err := holdfast.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testsvc.Nginx(t, "location / { proxy_http_version 1.1; proxy_pass "+h.URL+"; }")
	type reader struct {
		name string
		cmd  *exec.Cmd
		out  *bufio.Scanner
	}
	var all []reader
	for name, args := range eventClients {
		for where, base := range map[string]string{"": h.URL, " behind nginx": "http://" + proxy.Addr} {
			url := base + "/v1/events"
			cmd := exec.Command(args[0], append(args[1:len(args):len(args)], url)...)
			cmd.Env, cmd.Stderr = append(os.Environ(), urlOfEvents+"="+url), os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			t.Cleanup(func() { kill.Stop() })
			all = append(all, reader{name + where, cmd, bufio.NewScanner(out)})
		}
	}
	next := func(r reader, want string) {
		t.Helper()
		for r.out.Scan() {
			if strings.Contains(r.out.Text(), want) {
				return
			}
		}
		t.Fatalf("%s has ended, or was ended after a minute, without %q", r.name, want)
	}
	for _, r := range all {
		next(r, "retry: ")
	}
	for range 20 { // each cycle begins after all have received the last
		if err := locks.Do(t.Context(), "orders", nil, func(context.Context, *holdfast.Lease) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			next(r, `"event":"released"`)
		}
	}
	s.Drain()
	for _, r := range all {
		for r.out.Scan() {
		}
		if err := r.cmd.Wait(); err != nil {
			t.Errorf("%s: %v when the server drained", r.name, err)
		}
	}
	if err := errors.Join(locks.Close(), s.Close(context.Background())); err != nil {
		t.Error(err)
	}
}
