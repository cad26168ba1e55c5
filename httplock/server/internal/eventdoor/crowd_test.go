package eventdoor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCrowdOfReaders checks that each of many readers gets all events, in a few writes a second,
// however many events there are.
func TestCrowdOfReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, withHistory())
		var crowd []*screen
		for range 50 {
			crowd = append(crowd, s.read("", ""))
		}
		const pairs = 400
		began := time.Now()
		for range pairs {
			s.use("busy")
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)                        // until the last are written
		most := 2 + int(time.Since(began)/(250*time.Millisecond)) // with the head, and the first event
		for _, v := range crowd {
			if n := len(v.events()); n != 2*pairs {
				t.Errorf("%d events, want %d", n, 2*pairs)
			}
			if v.writes > most+2 {
				t.Errorf("%d writes in %s, want %d at most", v.writes, time.Since(began), most)
			}
		}
	})
}

// TestEventsAge checks that each reader gets the ages of the events at the time of writing.
func TestEventsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, withHistory())
		s.use("a", "b")
		v := s.read("", "nobody-knows-it")
		first := v.events()
		time.Sleep(3 * time.Second)
		later := s.read("", "nobody-knows-it").events()
		for i, e := range first {
			if e.AgoMS != nil && *later[i].AgoMS != *e.AgoMS+3050 {
				t.Errorf("%s: %d ms old, and 3.05 s later %d ms", e, *e.AgoMS, *later[i].AgoMS)
			}
		}
	})
}

// TestCompressedEvents checks that readers that accept gzip and see all names get far fewer bytes,
// wherever they begin. They can read all that was written at any time, and their streams are
// complete when the server drains. Other readers get a plain stream.
func TestCompressedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, withHistory())
		plain := s.read("", "")
		s.accept = "br, gzip;q=0.5"
		zipped, some := s.read("", ""), s.read("?prefix=a", "")
		s.who.Prefixes = []string{"a"}
		narrow := s.read("", "")
		s.who.Prefixes, s.accept = nil, "gzip;q=0"
		refused := s.read("", "")
		for range 200 {
			s.use("a", "b")
		}
		s.accept = "gzip"
		late := s.read("", "nobody-knows-it") // begins in the middle, with a gap
		s.use("a")
		time.Sleep(40 * time.Second) // with heartbeats
		s.use("b")

		if plain.all() != zipped.all() || plain.all() != refused.all() {
			t.Errorf("those who see all are told different things")
		}
		if n := len(late.events()); n != 2+804 {
			t.Errorf("%d events behind its gap, and that with which the server began, want 804", n-2)
		}
		if len(some.events()) != 402 || len(narrow.events()) != 402 {
			t.Errorf("%d and %d events of a prefix, want 402", len(some.events()), len(narrow.events()))
		}
		if zipped.text.Len() > plain.text.Len()/3 {
			t.Errorf("%d bytes compressed, and %d as they are", zipped.text.Len(), plain.text.Len())
		}
		for v, want := range map[*screen]string{plain: "", zipped: "gzip", some: "", narrow: "", refused: "", late: "gzip"} {
			if got := v.header.Get("Content-Encoding"); got != want || v.header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("Content-Encoding %q, want %q; Vary %q", got, want, v.header.Get("Vary"))
			}
		}
		s.server.Drain()
		if zipped.all(); !zipped.whole {
			t.Error("the server drained, and the stream has no end")
		}
		if late.all(); !late.whole {
			t.Error("the server drained, and the stream that began in the middle has no end")
		}
	})
}

// TestLargeCrowd checks that each reader gets fewer writes if there are more readers, and that an
// event after a pause is still written at once.
func TestLargeCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, withHistory())
		var crowd []*screen
		for range 200 {
			crowd = append(crowd, s.read("", ""))
		}
		s.use("first") // no time passes
		for _, v := range crowd {
			v.mu.Lock()
			if !strings.Contains(v.text.String(), `"first"`) {
				t.Fatalf("an event after a pause is not written at once: %q", v.text.String())
			}
			v.mu.Unlock()
		}
		for range 100 {
			s.use("busy")
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(950 * time.Millisecond) // until the last are written
		for _, v := range crowd {
			if n := len(v.events()); n != 202 || v.writes > 5 {
				t.Fatalf("%d events in %d writes within two seconds, want 202 in 5 at most", n, v.writes)
			}
		}
	})
}
