//go:build unix

package keeper

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// environ returns the variables of a process whose runtime directory is dir.
func environ(dir string) func(string) string {
	return func(key string) string { return map[string]string{"XDG_RUNTIME_DIR": dir, "TMPDIR": dir}[key] }
}

// short returns a directory whose path is short enough for sockets.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func listen(t *testing.T, dir string, h Handler) *Server {
	t.Helper()
	s, err := Listen(environ(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Serve(h)
	return s
}

func echo(_ context.Context, r Request) Answer {
	return Answer{Status: 7, Error: r.Do, LeftMS: r.TTLMS}
}

func TestAsk(t *testing.T) {
	dir := short(t)
	s := listen(t, dir, echo)
	a, err := Ask(t.Context(), s.Path(), Request{Do: Extend, TTLMS: 5000})
	if err != nil || a != (Answer{Status: 7, Error: Extend, LeftMS: 5000}) || a.Left() != 5*time.Second {
		t.Errorf("Ask = %+v, %v", a, err)
	}
	for path, want := range map[string]os.FileMode{filepath.Dir(s.Path()): os.ModeDir | 0o700, s.Path(): os.ModeSocket} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode(); got&want != want {
			t.Errorf("%s has mode %v, want %v", path, got, want)
		}
	}
	s.Close()
	if _, err := os.Lstat(s.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := Ask(t.Context(), s.Path(), Request{}); !errors.Is(err, ErrGone) {
		t.Errorf("Ask after Close = %v", err)
	}
}

// TestAskDoesNotWaitForEver checks that Ask ends with its context if the other process does not
// reply.
func TestAskDoesNotWaitForEver(t *testing.T) {
	s, err := Listen(environ(short(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, s.Path(), Request{}); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("Ask = %v", err)
	}
}

// TestSilentPeersHoldNobodyUp checks that connections that send nothing do not delay the answer to
// another connection for long.
func TestSilentPeersHoldNobodyUp(t *testing.T) {
	s := listen(t, short(t), echo)
	for range 15 {
		conn, err := net.Dial("unix", s.Path())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), requestTime/2)
	defer cancel()
	if _, err := Ask(ctx, s.Path(), Request{}); err != nil {
		t.Error(err)
	}
}

// TestDirectoryIsPrivate checks that a directory that another user could open or replace is not
// used.
func TestDirectoryIsPrivate(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, runtime string) error{
		"open to others": func(_ *testing.T, runtime string) error {
			dir := filepath.Join(runtime, ours)
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o750))
		},
		"a link": func(t *testing.T, runtime string) error { return os.Symlink(short(t), filepath.Join(runtime, ours)) },
		"a file": func(_ *testing.T, runtime string) error {
			return os.WriteFile(filepath.Join(runtime, ours), nil, 0o600)
		},
		"in a directory of all": func(_ *testing.T, runtime string) error { return os.Chmod(runtime, 0o777) },
		"not there":             func(_ *testing.T, runtime string) error { return os.Remove(runtime) },
	} {
		t.Run(name, func(t *testing.T) {
			spoilt, fallback := short(t), short(t)
			if err := spoil(t, spoilt); err != nil {
				t.Fatal(err)
			}
			s, err := Listen(func(key string) string {
				return map[string]string{"XDG_RUNTIME_DIR": spoilt, "TMPDIR": fallback}[key]
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if !strings.HasPrefix(s.Path(), fallback+"/") {
				t.Errorf("the socket is %s", s.Path())
			}
		})
	}
}

// TestPathIsShort checks that a path that is too long for sockets is not used.
func TestPathIsShort(t *testing.T) {
	long := filepath.Join(short(t), strings.Repeat("x", 60))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	s := listen(t, long, echo)
	if len(s.Path()) > maxPath || strings.HasPrefix(s.Path(), long) {
		t.Errorf("the socket is %s", s.Path())
	}
	if got := len(socketName()); got > maxName {
		t.Errorf("a name has %d bytes, want %d at most", got, maxName)
	}
}

// TestSweep checks that the socket of a killed process is deleted, but neither a live one nor one
// that is being made.
func TestSweep(t *testing.T) {
	dir := short(t)
	live, killed, young := listen(t, dir, echo), listen(t, dir, echo), listen(t, dir, echo)
	for _, s := range []*Server{killed, young} {
		s.listener.SetUnlinkOnClose(false)
		s.Close()
	}
	past := time.Now().Add(-2 * old)
	for _, s := range []*Server{live, killed} {
		if err := os.Chtimes(s.Path(), past, past); err != nil {
			t.Fatal(err)
		}
	}
	sweep(filepath.Dir(live.Path()))
	for s, want := range map[*Server]bool{live: true, killed: false, young: true} {
		if _, err := os.Lstat(s.Path()); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", s.Path(), err == nil, want)
		}
	}
}

func BenchmarkListen(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := Listen(environ(dir))
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
