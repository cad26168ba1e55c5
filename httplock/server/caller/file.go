package caller

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// lookEvery is the shortest time between two checks of a File for a change. Requests trigger
// the checks.
const lookEvery = time.Second

// fileLimit is how many bytes a file of callers may have.
const fileLimit = 4 << 20

// FileOptions configure Open. Nil options are the defaults.
type FileOptions struct {
	// Logger receives changes of the file, and why one cannot be used. Default:
	// slog.Default.
	Logger *slog.Logger

	// Verifier returns the Verifier of an issuer that the file names. It is called
	// whenever the file has changed. Default: a file with issuers is refused.
	Verifier func(Issuer) (Verifier, error)
}

// A File is a Source: it knows the callers that a file of JSON lists. Use Open to make
// one. A change of the file counts within a second; an invalid file is logged,
// and the callers stay the same.
type File struct {
	path string
	opts FileOptions

	known atomic.Pointer[known]

	mu     sync.Mutex
	looked time.Time // when the file was last read
	text   []byte    // the file as last read without an error
	wrong  error     // of that text
	logged string    // the last message of look
}

// Open reads a file of callers. It must belong to the user of this process or to root,
// and no other user may write it.
func Open(path string, opts *FileOptions) (*File, error) {
	f := &File{path: path}
	if opts != nil {
		f.opts = *opts
	}
	if f.opts.Logger == nil {
		f.opts.Logger = slog.Default()
	}
	if err := f.Reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Reload reads the file now. If that fails, the callers stay as they were.
func (f *File) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reloadLocked()
}

func (f *File) reloadLocked() error {
	f.looked = time.Now()
	text, warning, err := readFile(f.path)
	if err != nil {
		return fmt.Errorf("caller: %w", err)
	}
	if f.text != nil && bytes.Equal(text, f.text) {
		return f.wrong
	}
	f.text, f.wrong = text, nil
	all, err := parse(text, f.opts.Verifier)
	if err != nil {
		f.wrong = fmt.Errorf("caller: %s: %w", f.path, err)
		return f.wrong
	}
	f.known.Store(all)
	f.opts.Logger.Info("callers are read", "file", f.path, "callers", all.count, "issuers", len(all.issuers))
	if warning != "" {
		f.opts.Logger.Warn("callers: "+warning, "file", f.path)
	}
	return nil
}

// look reads the file again if the last look was a while ago. Other requests do not wait
// for it, and a file that stays wrong is logged once.
func (f *File) look() {
	if !f.mu.TryLock() {
		return
	}
	defer f.mu.Unlock()
	if time.Since(f.looked) < lookEvery {
		return
	}
	said := ""
	if err := f.reloadLocked(); err != nil {
		if said = err.Error(); said != f.logged {
			f.opts.Logger.Error("callers stay as they were", "error", err)
		}
	}
	f.logged = said
}

// Identify implements Source. If a request has a token and comes through a unix socket, the
// token decides.
func (f *File) Identify(r *http.Request) (*Caller, error) {
	f.look()
	all := f.known.Load()
	token, err := bearer(r)
	switch {
	case err != nil:
		return nil, err
	case token != "":
		return all.ofToken(r.Context(), token)
	}
	if uid, ok := userOf(r); ok {
		return all.users[uid], nil
	}
	return nil, nil
}

// bearer returns the token of r, or "" if it has none.
func bearer(r *http.Request) (string, error) {
	shown := r.Header["Authorization"]
	if len(shown) == 0 {
		return "", nil
	}
	scheme, token, _ := strings.Cut(shown[0], " ")
	if token = strings.TrimSpace(token); len(shown) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", Wrong("send one Authorization: Bearer, and a token behind it")
	}
	return token, nil
}

// readFile returns the content of a file, and a warning if other users can read the file. It
// fails if they can write it.
func readFile(path string) (text []byte, warning string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s is not a file", path)
	}
	if warning, err = checkOwner(info); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	text, err = io.ReadAll(io.LimitReader(file, fileLimit+1))
	if err == nil && len(text) > fileLimit {
		err = fmt.Errorf("%s has more than %d bytes", path, fileLimit)
	}
	return text, warning, err
}
