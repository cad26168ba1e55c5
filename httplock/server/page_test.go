package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/codeblock"
	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/memlock"
)

const page = "../../docs/reference/http.md"

// TestCurlInPage sends the requests that docs/reference/http.md shows, one after the other. It
// checks that the replies have the fields and values of the page, except for values that differ
// each time.
func TestCurlInPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks, problems := codeblock.Find(page, string(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	synctest.Test(t, func(t *testing.T) {
		engine, err := memlock.New(&memlock.Options{History: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.New(engine, &server.Options{Callers: sourceFunc(ann), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		shell := &shell{t: t, handler: exchange.Recorded(t, s), words: map[string]string{
			"SERVER": "http://127.0.0.1:7420", "KEY": "8e03978e-40d5-43e8-bc93-6894a57f9324", "OTHER": "0b0c4ae0-3f0e-4d23-9d2c-2f4ad4ab1f0c",
			"TOKEN": "CiAGNl0wJLgVlLRbIb7c5TGQm6iVqQyPqBzjKM5Nzt0",
		}}
		requests := 0
		for _, b := range blocks {
			if b.Kind == "curl" {
				requests += shell.session(b)
			}
		}
		if requests < 15 {
			t.Errorf("the page has %d requests: are they found?", requests)
		}
	})
}

// ann identifies a request with a token as ann, and a request without one as shop.
func ann(r *http.Request) (*caller.Caller, error) {
	if r.Header["Authorization"] == nil {
		return &caller.Caller{Name: "shop", Rights: caller.All}, nil
	}
	return &caller.Caller{Name: "ann", Rights: caller.Acquire | caller.Read}, nil
}

// A shell sends the requests of the page.
type shell struct {
	t       *testing.T
	handler http.Handler
	words   map[string]string // variables
}

// session sends the requests of a block, and returns their number.
func (s *shell) session(b codeblock.Block) (requests int) {
	lines := strings.Split(strings.TrimSpace(b.Text), "\n")
	for len(lines) > 0 {
		command, ok := strings.CutPrefix(lines[0], "curl ")
		if !ok || len(lines) < 2 || !strings.HasPrefix(lines[1], "# ") {
			s.t.Fatalf("%s: %q: want a command and the status of its answer", b.At(), lines[0])
		}
		status, want := lines[1][2:], ""
		if lines = lines[2:]; len(lines) > 0 && strings.HasPrefix(lines[0], "{") {
			want, lines = lines[0], lines[1:]
		}
		s.compare(b.At()+": "+command, s.curl(command), status, want)
		requests++
	}
	return requests
}

// curl sends the request of a command. It first lets some time pass, as people do.
func (s *shell) curl(command string) *httptest.ResponseRecorder {
	time.Sleep(2 * time.Millisecond)
	method, body, target, header := "", "", "", http.Header{}
	args := s.split(command)
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-X":
			i++
			method = args[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Set(name, value)
		case "--json":
			i++
			body = args[i]
			header.Set("Content-Type", "application/json")
		default:
			target = args[i]
		}
	}
	if method == "" {
		method = http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, strings.NewReader(body))
	r.Header = header
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if tag := w.Header().Get("ETag"); tag != "" {
		s.words["ETAG"] = tag
	}
	for _, c := range w.Result().Cookies() {
		s.words["COOKIE"] = c.Name + "=" + c.Value
	}
	return w
}

// split splits a command into words. It handles quotation marks and variables.
func (s *shell) split(command string) (words []string) {
	word := regexp.MustCompile(`('[^']*'|"[^"]*"|[^\s'"]+)+`)
	part := regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	for _, w := range word.FindAllString(command, -1) {
		text := ""
		for _, p := range part.FindAllString(w, -1) {
			if p[0] == '\'' {
				text += p[1 : len(p)-1]
				continue
			}
			text += os.Expand(strings.Trim(p, `"`), func(name string) string {
				if s.words[name] == "" {
					s.t.Fatalf("%s: there is no $%s yet", command, name)
				}
				return s.words[name]
			})
		}
		words = append(words, text)
	}
	return words
}

// differing are the fields whose values differ each time.
var differing = []string{"lease_id", "fencing_token", "fencing_token_str", "last_token", "last_token_str", "expires_in_ms", "place_expires_in_ms", "held_ms", "waiting_ms", "token", "id", "ago_ms", "since_ms", "last_id", "waited_ms", "longest_ms"}

func (s *shell) compare(what string, got *httptest.ResponseRecorder, status, want string) {
	if strconv.Itoa(got.Code) != status {
		s.t.Fatalf("%s\nis answered %d %s, the page has %s", what, got.Code, got.Body, status)
	}
	body := strings.TrimSpace(got.Body.String())
	if body == "" || want == "" {
		if body != want {
			s.t.Errorf("%s\nis answered %q, the page has %q", what, body, want)
		}
		return
	}
	var g, w any
	if err := json.Unmarshal([]byte(body), &g); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		s.t.Fatalf("%s: the page: %v", what, err)
	}
	if !reflect.DeepEqual(masked(g), masked(w)) {
		s.t.Errorf("%s\nis answered\n%s\nthe page has\n%s", what, body, want)
	}
	for variable, field := range map[string]string{"LEASE": "lease_id", "FENCING": "fencing_token_str", "SECRET": "token"} {
		if text, ok := g.(map[string]any)[field].(string); ok {
			s.words[variable] = text
		}
	}
}

// masked returns v with types instead of values in the fields that differ each time.
func masked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for name, value := range v {
			if m[name] = masked(value); slices.Contains(differing, name) {
				m[name] = fmt.Sprintf("%T", value)
			}
		}
		return m
	case []any:
		for i := range v {
			v[i] = masked(v[i])
		}
		return v
	case string:
		return regexp.MustCompile(`redeem [0-9a-f]{12}`).ReplaceAllString(v, "redeem ID")
	}
	return v
}

// notHere are error codes that no server sends: codes of programs that hold a lock themselves, and
// of guards.
var notHere = []string{"deadlock", "not-replicated", "max-hold", "stalled", "left", "too-many-attempts", "token-stale", "marks-full"}

// TestCodesInPage compares the codes in docs/reference/http.md, and their statuses, with the
// sources and the table of all errors.
func TestCodesInPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\n## Codes\n")
	inPage := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (\\d+) \\|").FindAllStringSubmatch(list, -1) {
		inPage[m[1]], _ = strconv.Atoi(m[2])
	}
	inCode := refusals(t)
	for _, c := range codes.All() {
		if !slices.Contains(notHere, c.Name) {
			inCode[c.Name] = c.Status
		}
	}
	if len(inCode) < 30 {
		t.Errorf("%d codes in the sources: are they read?", len(inCode))
	}
	for code, status := range inCode {
		if inPage[code] != status {
			t.Errorf("%s: the page has the status %d, the sources %d", code, inPage[code], status)
		}
	}
	for code := range inPage {
		if inCode[code] == 0 {
			t.Errorf("%s: it is in the page, and not in the sources", code)
		}
	}
}

// refusals returns the codes of all refusals in the sources, with their statuses.
func refusals(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{"too-many-waiters": 429, "too-many-lists": 429, "too-many-streams": 429, "too-many-leases": 429, "too-many-bytes": 429, "too-much-kept": 429, "busy": 503, "in-progress": 409}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if code, status := refusal(lit); code != "" {
					found[code] = status
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// refusal returns the code and the status of a literal that has both.
func refusal(lit *ast.CompositeLit) (code string, status int) {
	for _, element := range lit.Elts {
		field, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch name, _ := field.Key.(*ast.Ident); {
		case name == nil:
		case name.Name == "Code":
			if text, ok := field.Value.(*ast.BasicLit); ok {
				code, _ = strconv.Unquote(text.Value)
			}
		case name.Name == "Status":
			if constant, ok := field.Value.(*ast.SelectorExpr); ok {
				status = statusOf(constant.Sel.Name)
			}
		}
	}
	if status == 0 {
		return "", 0
	}
	return code, status
}

// statusOf returns the status of a constant of net/http.
func statusOf(constant string) int {
	for status := 400; status < 600; status++ {
		if constant == "Status"+strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(status)) {
			return status
		}
	}
	return 0
}
