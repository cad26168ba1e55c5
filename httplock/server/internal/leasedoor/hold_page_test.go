package leasedoor_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/internal/codeblock"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

var (
	leaseIDs  = regexp.MustCompile(`("lease_id":"[0-9a-f]{4})[0-9a-f]*"`)
	remainder = regexp.MustCompile(`"expires_in_ms":2\d{4}\b`) // just before or after a renewal
)

// TestHoldPage sends the request that the page shows, and compares the lines of the reply with the
// page.
func TestHoldPage(t *testing.T) {
	const page = "../../../../docs/reference/hold-stream.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks, errs := codeblock.Find(page, string(text))
	if len(errs) > 0 || len(blocks) != 2 {
		t.Fatalf("%d blocks, %v", len(blocks), errs)
	}
	body := regexp.MustCompile(`--data '(.*)'`).FindStringSubmatch(blocks[0].Text)
	if body == nil || !strings.Contains(blocks[0].Text, "/v1/leases?hold=1") {
		t.Fatalf("%s: no request", blocks[0].At())
	}
	var req wire.LeaseRequest
	if err := json.Unmarshal([]byte(body[1]), &req); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := openFar(t, mem.New(nil))
		holder := s.hold("&direct=1", rival, asked(0))
		c := s.hold("", key, req)
		time.Sleep(7 * second)
		holder.close()
		time.Sleep(6 * second)
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", refOf(c.lines()[2]), nil)
		var got strings.Builder
		for _, l := range c.lines() {
			line, err := json.Marshal(l.HoldLine)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(append(line, '\n'))
		}
		shown := remainder.ReplaceAllString(leaseIDs.ReplaceAllString(got.String(), `$1…"`), `"expires_in_ms":26998`)
		if got, want := shown, blocks[1].Text; strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: the lines are\n%s\nand the page has\n%s", blocks[1].At(), got, want)
		}
	})
}
