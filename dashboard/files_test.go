package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/dashboard"
)

// maxSize is how many bytes a browser loads at most to show the page, compressed.
const maxSize = 60 << 10

// web has the files of the page.
var web = os.DirFS("web")

// files returns the paths of the page's files.
func files(t *testing.T) (all []string) {
	t.Helper()
	err := fs.WalkDir(web, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// served returns the paths that a browser can load: all scripts are one file, and so are the style
// sheets.
func served(t *testing.T) []string {
	all := slices.DeleteFunc(files(t), func(name string) bool {
		return path.Ext(name) == ".js" && name != "main.js" || path.Ext(name) == ".css"
	})
	return append(all, "page.css")
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	body, err := fs.ReadFile(web, name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// ask sends a request to h. header has names and values in turn.
func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	return send(h, httptest.NewRequest(method, target, nil), header...)
}

func send(h http.Handler, r *http.Request, header ...string) *httptest.ResponseRecorder {
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// page is the page without an API.
func page() http.Handler { return dashboard.Page(http.NotFoundHandler()) }

// TestFiles checks that each file is sent as it is or compressed, with its type and its tag.
func TestFiles(t *testing.T) {
	h, tags := page(), map[string]string{}
	for _, name := range append(served(t), "") {
		want := sent(t, or(name, "index.html"))
		plain := ask(h, "GET", "/"+name)
		if plain.Code != 200 || !bytes.Equal(plain.Body.Bytes(), want) || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: %d, %d bytes, want %d", name, plain.Code, plain.Body.Len(), len(want))
		}
		zipped := ask(h, "GET", "/"+name, "Accept-Encoding", "br, gzip;q=0.8")
		got := zipped.Body.Bytes()
		if zipped.Header().Get("Content-Encoding") == "gzip" {
			got = unzipped(t, zipped.Body.Bytes())
			if zipped.Header().Get("Etag") == plain.Header().Get("Etag") {
				t.Errorf("%s: its two forms have one tag", name)
			}
		} else if len(want) > 512 {
			t.Errorf("%s: %d bytes are not compressed", name, len(want))
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: compressed it is another one", name)
		}
		head := ask(h, "HEAD", "/"+name)
		if head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("Content-Length") != fmt.Sprint(len(want)) {
			t.Errorf("%s: HEAD: %d, %s", name, head.Code, head.Header())
		}
		kind, tag := plain.Header().Get("Content-Type"), plain.Header().Get("Etag")
		if kind != kindOf(or(name, "index.html")) {
			t.Errorf("%s: %s", name, kind)
		}
		if other, twice := tags[tag]; twice && !bytes.Equal(want, sent(t, other)) {
			t.Errorf("%s and %s have one tag", name, other)
		}
		tags[tag] = or(name, "index.html")
	}
}

func or(name, other string) string {
	if name == "" {
		return other
	}
	return name
}

func kindOf(name string) string {
	kind := map[string]string{
		".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml",
	}[path.Ext(name)]
	switch kind {
	case "":
		kind = "text/plain"
	case "image/svg+xml":
		return kind
	}
	return kind + "; charset=utf-8"
}

func unzipped(t *testing.T, body []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// sent returns a file as it is sent: our scripts and style sheets without comments and indentation.
func sent(t *testing.T, name string) []byte {
	t.Helper()
	if name == "main.js" { // TestJoin checks its content
		return ask(page(), "GET", "/main.js").Body.Bytes()
	}
	if name != "page.css" {
		return read(t, name)
	}
	var body []byte
	for _, sheet := range files(t) {
		if path.Ext(sheet) == ".css" {
			body = append(body, read(t, sheet)...)
		}
	}
	body = regexp.MustCompile(`/\*(?:[^*]|\*[^/])*\*+/`).ReplaceAll(body, nil)
	body = regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAll(body, nil)
	return bytes.TrimPrefix(regexp.MustCompile(`\n{2,}`).ReplaceAll(body, []byte("\n")), []byte("\n"))
}

// TestTextsHaveOneLine checks that removing comments and indentation changes no script: every
// template of several lines is one of elements, and none of its lines looks like a comment.
func TestTextsHaveOneLine(t *testing.T) {
	for _, name := range files(t) {
		if path.Ext(name) != ".js" || strings.HasPrefix(name, "vendor/") {
			continue
		}
		for _, found := range templates(string(read(t, name))) {
			if strings.Contains(found.text, "\n") && (found.tag != "html" || regexp.MustCompile(`(?m)(^|[;,{])[ \t]*//`).MatchString(found.text)) {
				t.Errorf("%s: a text of several lines: %s`%s`", name, found.tag, found.text)
			}
		}
	}
	for _, c := range []struct{ script, tag, text string }{
		{"a = `x\n y`;", "=", "x\n y"},
		{"f(html`<a>${b ? `1\n2` : ''}</a>`)", "?", "1\n2"},
		{"// it's\nx = /[`'\"]/; y = 'a`b'; z = css`a\nb`;", "css", "a\nb"},
		{"/* ` */ return `q\n`;", "return", "q\n"},
	} {
		all := templates(c.script)
		if len(all) == 0 || all[0].tag != c.tag || all[0].text != c.text {
			t.Errorf("%s: %+v", c.script, all)
		}
	}
}

// A template is a text in backquotes, without what is in ${}, and the word or sign before it.
type template struct{ tag, text string }

// token matches a comment, a string, a word or white space of a script.
var token = regexp.MustCompile(`^(?://[^\n]*|/\*(?s:.*?)\*/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[\w$]+|\s+)`)

var expression = regexp.MustCompile(`^/(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*`)

// templates returns the templates of a script, inner ones first.
func templates(script string) (all []template) {
	var open []*template // not yet ended
	var depth []int      // of braces in the ${} of each
	inText, last := false, ""
	for i := 0; i < len(script); {
		rest := script[i:]
		switch {
		case inText && rest[0] == '`':
			all, open, depth = append(all, *open[len(open)-1]), open[:len(open)-1], depth[:len(depth)-1]
			inText, last, i = false, "`", i+1
		case inText && strings.HasPrefix(rest, "${"):
			inText, last, i = false, "{", i+2
			depth[len(depth)-1] = 0
		case inText && rest[0] == '\\':
			open[len(open)-1].text += rest[:2]
			i += 2
		case inText:
			open[len(open)-1].text += rest[:1]
			i++
		case rest[0] == '`':
			open, depth = append(open, &template{tag: last}), append(depth, 0)
			inText, i = true, i+1
		case rest[0] == '}' && len(open) > 0 && depth[len(depth)-1] == 0:
			inText, i = true, i+1
		case rest[0] == '/' && token.FindString(rest) == "" && (last == "return" || strings.ContainsAny(last, "(,=:[!&|?{};+>")) && expression.MatchString(rest):
			last = "/"
			i += len(expression.FindString(rest))
		default:
			part := token.FindString(rest)
			if part == "" {
				part = rest[:1]
			}
			switch {
			case len(open) > 0 && part == "{":
				depth[len(depth)-1]++
			case len(open) > 0 && part == "}":
				depth[len(depth)-1]--
			}
			if strings.TrimSpace(part) != "" && !strings.HasPrefix(part, "//") && !strings.HasPrefix(part, "/*") {
				last = part
			}
			i += len(part)
		}
	}
	return all
}

// TestEncodings checks that the server compresses for the clients that accept gzip, and no others.
func TestEncodings(t *testing.T) {
	h := page()
	for accept, want := range map[string]string{
		"": "", "gzip": "gzip", "GZIP": "gzip", "deflate, gzip": "gzip", "*": "gzip", "x-gzip": "gzip", "gzip ; q=0.001": "gzip",
		"br": "", "gzip;q=0": "", "gzip;q=0.000, *": "", "identity": "", "*;q=0": "", "gzipped": "",
	} {
		var header []string
		if accept != "" {
			header = []string{"Accept-Encoding", accept}
		}
		w := ask(h, "GET", "/main.js", header...)
		if got := w.Header().Get("Content-Encoding"); got != want || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %q, want %q; Vary: %s", accept, got, want, w.Header().Get("Vary"))
		}
	}
}

// TestTags checks that a browser must revalidate a file each time, and receives it only if its copy
// is out of date.
func TestTags(t *testing.T) {
	h := page()
	tag := ask(h, "GET", "/main.js").Header().Get("Etag")
	zipped := ask(h, "GET", "/main.js", "Accept-Encoding", "gzip").Header().Get("Etag")
	for _, c := range []struct {
		has, accept string
		want        int
	}{
		{tag, "", 304}, {`"other", ` + tag, "", 304}, {"W/" + tag, "", 304}, {"*", "", 304}, {zipped, "gzip", 304},
		{`"other"`, "", 200}, {strings.Trim(tag, `"`), "", 200}, {zipped, "", 200}, {tag, "gzip", 200}, {"", "", 200},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			w := ask(h, method, "/main.js", "If-None-Match", c.has, "Accept-Encoding", c.accept)
			if w.Code != c.want || w.Header().Get("Cache-Control") != "no-cache" || w.Header().Get("Etag") == "" || c.want == 304 && w.Body.Len() > 0 {
				t.Errorf("%s of what has %s and takes %q: %d %s, want %d", method, c.has, c.accept, w.Code, w.Header(), c.want)
			}
		}
	}
}

// TestParts checks that a client that requests a part of a file gets that part or the whole file.
func TestParts(t *testing.T) {
	h := page()
	for _, accept := range []string{"", "gzip"} {
		w := ask(h, "GET", "/main.js", "Range", "bytes=0-9", "Accept-Encoding", accept)
		if length := w.Header().Get("Content-Length"); length != fmt.Sprint(w.Body.Len()) || w.Code == 206 && w.Body.Len() != 10 {
			t.Errorf("%q: %d, %d bytes, Content-Length %s", accept, w.Code, w.Body.Len(), length)
		}
	}
}

// TestHeaders checks that the headers forbid the page to load files from elsewhere, to run code
// that is not its own, and to be in a frame.
func TestHeaders(t *testing.T) {
	h := page()
	for _, name := range append(served(t), "") {
		got := ask(h, "GET", "/"+name).Header()
		for key, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got.Get(key) != want {
				t.Errorf("%s: %s: %q, want %q", name, key, got.Get(key), want)
			}
		}
		csp := strings.Split(got.Get("Content-Security-Policy"), "; ")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'", "font-src 'self'",
			"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
		} {
			if !contains(csp, want) {
				t.Errorf("%s: the policy lacks %s: %q", name, want, csp)
			}
		}
		if text := strings.Join(csp, " "); strings.Contains(text, "unsafe") || strings.Contains(text, "data:") || strings.Contains(text, "*") {
			t.Errorf("%s: the policy allows too much: %s", name, text)
		}
	}
}

func contains(all []string, one string) bool {
	for _, other := range all {
		if one == other {
			return true
		}
	}
	return false
}

// loaded reports whether a browser loads a file to show the page.
func loaded(name string) bool {
	return !strings.Contains(name, "LICENSE") && path.Base(name) != "SHA256SUMS" && path.Base(name) != "VERSIONS"
}

// TestSizeOfAllFiles checks that a browser loads at most 60 KiB to show the page.
func TestSizeOfAllFiles(t *testing.T) {
	h, total := page(), 0
	for _, name := range served(t) {
		if loaded(name) {
			total += ask(h, "GET", "/"+name, "Accept-Encoding", "gzip").Body.Len()
		}
	}
	t.Logf("%d bytes of %d", total, maxSize)
	if total > maxSize {
		t.Errorf("the page has %d bytes when compressed, want %d at most", total, maxSize)
	}
}

// TestVendor checks that the libraries are those that scripts/vendor.sh has made, byte for byte,
// each with its licence.
func TestVendor(t *testing.T) {
	sums := map[string]string{}
	for line := range strings.Lines(string(read(t, "vendor/SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	for _, name := range files(t) {
		inVendor, isVendor := strings.CutPrefix(name, "vendor/")
		if !isVendor || inVendor == "SHA256SUMS" {
			continue
		}
		sum := sha256.Sum256(read(t, name))
		if sums[inVendor] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not what scripts/vendor.sh has made", name)
		}
		delete(sums, inVendor)
	}
	for name := range sums {
		t.Errorf("vendor/%s is missing", name)
	}
	licences := map[string]string{"hooks": "preact"} // hooks are a part of preact
	for line := range strings.Lines(string(read(t, "vendor/VERSIONS"))) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			t.Fatalf("VERSIONS: %q", line)
		}
		library := path.Base(fields[0])
		if strings.HasPrefix(fields[2], "hooks/") {
			library = "hooks"
		}
		file := "vendor/LICENSE." + or(licences[library], library)
		if text := string(read(t, file)); !strings.Contains(text, "Copyright") && !strings.Contains(text, "Apache License") {
			t.Errorf("%s has no licence", file)
		}
	}
}
