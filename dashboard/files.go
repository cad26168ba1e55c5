package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/internal/header"
	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/wire"
)

//go:embed web
var web embed.FS

// kindOf returns the content type of a file, by the end of its name. The types that the system
// knows must not matter.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8" // licences
}

// policy lets the page load only what it needs, from this server. With trusted types the
// browser refuses markup that is made from strings.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// setHeaders sets the headers of each file. A browser caches a file, and validates it each
// time, so that a new version of the program shows its own page at once.
func setHeaders(h http.Header) {
	setSafe(h)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding")
	h.Set("X-Frame-Options", "DENY")
}

// setSafe sets the headers of every response.
func setSafe(h http.Header) {
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
}

// A file is a file of the page.
type file struct {
	kind           string
	plain, squeeze form
}

// A form is the bytes of a file in one encoding, with their ETag.
type form struct {
	body     []byte
	tag      string
	encoding string // "" or gzip
}

// pack returns the files of the page by their paths, compressed. All style sheets are sent as
// one, and so are all scripts. Our own are sent without comments and indentation.
func pack() map[string]*file {
	all, scripts, style := map[string]*file{}, map[string][]byte{}, []byte(nil)
	err := fs.WalkDir(web, "web", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := web.ReadFile(name)
		if err != nil {
			return err
		}
		switch own := strings.TrimPrefix(name, "web/"); {
		case strings.HasPrefix(own, "css/"):
			style = append(style, bareStyle(body)...)
		case path.Ext(own) == ".js":
			scripts[own] = body
		default:
			all["/"+own] = newFile(own, body)
		}
		return nil
	})
	if err == nil {
		var script []byte
		script, err = join(scripts, "main.js")
		all["/main.js"] = newFile("main.js", script)
	}
	if err != nil {
		panic(fmt.Sprintf("dashboard: files that are part of the program: %v", err))
	}
	all["/page.css"] = newFile("page.css", style)
	all["/"] = all["/index.html"]
	return all
}

func newFile(name string, body []byte) *file {
	sum := sha256.Sum256(body)
	tag := hex.EncodeToString(sum[:12])
	f := &file{kind: kindOf(name), plain: form{body: body, tag: `"` + tag + `"`}}
	f.squeeze = f.plain
	if small := squeezed(body); len(small) < len(body) {
		f.squeeze = form{small, `"` + tag + `-gzip"`, "gzip"}
	}
	return f
}

func squeezed(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // there is such a level
	_, _ = w.Write(body)                                  // to memory
	_ = w.Close()
	return b.Bytes()
}

// ServeHTTP answers with the file, or 304 if the browser has it.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	setHeaders(h)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuseMethod(w, "GET, HEAD")
		return
	}
	v := &f.plain
	if header.TakesGzip(r.Header) {
		v = &f.squeeze
	}
	h.Set("Etag", v.tag)
	h.Set("Content-Type", f.kind)
	if v.encoding != "" {
		h.Set("Content-Encoding", v.encoding)
		h.Set("Content-Length", strconv.Itoa(len(v.body))) // http.ServeContent sets it without an encoding only
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(v.body))
}

// refuseMethod answers a request with a method that the path does not have.
func refuseMethod(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	refuse(w, http.StatusMethodNotAllowed, "method-not-allowed", "this path has "+allow+" only")
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	problem.Write(w, wire.Problem{Status: status, Code: code, Detail: detail})
}
