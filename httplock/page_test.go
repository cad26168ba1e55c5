package httplock_test

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestEnginePage sends the request that docs/reference/http-engine.md shows, and compares the reply
// with the one on the page. It also checks that the page lists all methods.
func TestEnginePage(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/http-engine.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	blocks := regexp.MustCompile("(?s)```http\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks, want a request and a reply", len(blocks))
	}
	engine := mem.New(nil)
	holder := drivertest.Request("orders/42", 30*time.Second)
	holder.Holder = lockinfo.Holder{Host: "web-1", PID: 77}
	drivertest.Granted(t, engine, holder)
	handler, err := server.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The handler is not closed: it has no streams, and the engine belongs to the test.
	header, body, _ := strings.Cut(blocks[0][1], "\n\n")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Replace(header, "\n", " HTTP/1.1\n", 1) + "\nHost: 127.0.0.1\n\n")))
	if err != nil {
		t.Fatal(err)
	}
	r.Body = io.NopCloser(strings.NewReader(body))
	answer := httptest.NewRecorder()
	exchange.Recorded(t, handler).ServeHTTP(answer, r)
	_, want, _ := strings.Cut(blocks[1][1], "\n\n")
	if got, want := shape(t, answer.Body.String()), shape(t, want); got != want {
		t.Errorf("the reply is\n%s\nand on the page\n%s", got, want)
	}
	source, err := os.ReadFile("internal/form/form.go")
	if err != nil {
		t.Fatal(err)
	}
	methods := regexp.MustCompile(`(?m)^\t[A-Z]\w+ += "([a-z-]+)"$`).FindAllStringSubmatch(string(source), -1)
	if len(methods) != 26 {
		t.Errorf("%d methods were found", len(methods))
	}
	for _, method := range methods {
		if !strings.Contains(page, "`"+method[1]+"`") {
			t.Errorf("the page lacks method %s", method[1])
		}
	}
}

// shape returns the JSON text without the values that depend on the clock.
func shape(t *testing.T, text string) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	blocker, _ := v["blocker"].(map[string]any)
	for _, key := range slices.Collect(maps.Keys(blocker)) {
		if strings.HasSuffix(key, "_ns") {
			blocker[key] = "ns"
		}
	}
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
