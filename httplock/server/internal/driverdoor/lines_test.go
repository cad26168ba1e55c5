package driverdoor

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A sizer records the largest write, and ends the stream after the last notice.
type sizer struct {
	*httptest.ResponseRecorder
	largest, left int
	end           chan struct{}
}

func (s *sizer) Write(p []byte) (int, error) {
	s.largest = max(s.largest, len(p))
	if s.left -= bytes.Count(p, []byte("\n")); s.left == 0 {
		close(s.end)
	}
	return s.ResponseRecorder.Write(p)
}

// TestLongBacklogIsSentInParts checks that a stream with a long backlog sends it in small writes,
// and keeps a small buffer.
func TestLongBacklogIsSentInParts(t *testing.T) {
	d := newDesk(&door.House{}, http.NewServeMux())
	defer d.close()
	b := newBacklog()
	for range mostNotices {
		b.tell(lockinfo.NewLeaseID(), driver.Notice{})
	}
	s := &sizer{ResponseRecorder: httptest.NewRecorder(), left: mostNotices, end: make(chan struct{})}
	out := newLines(s, lineLimit)
	d.follow(out, &door.Request{Request: httptest.NewRequest(http.MethodPost, "/", nil)}, b, form.Message{}, s.end)
	if s.left != 0 || s.largest > 2*linesPart || out.text.Cap() > 4*linesPart {
		t.Errorf("%d lines are not sent; writes of %d bytes, and a buffer of %d, want parts of %d", s.left, s.largest, out.text.Cap(), linesPart)
	}
}
