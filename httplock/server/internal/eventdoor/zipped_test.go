package eventdoor

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// TestGzipped checks that a compressed stream is readable after each piece, and complete at its
// end. It has pieces for all readers and pieces for one reader, in any order, and begins anywhere.
func TestGzipped(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var p press
	var texts [][]byte
	var blocks [][]byte
	for range 10 {
		text := []byte(strings.Repeat(string(rune('a'+r.IntN(26)))+" text that comes again; ", r.IntN(3000)))
		texts, blocks = append(texts, text), append(blocks, p.press(text))
	}
	for begin := range texts {
		var z gzipped
		stream := []byte(gzipHead)
		var want []byte
		for i := begin; i < len(texts); i++ {
			z.add(texts[i])
			stream = append(stream, blocks[i]...)
			want = append(want, texts[i]...)
			if r.IntN(2) == 0 {
				stream = z.addOwn(stream, ":\n\n")
				want = append(want, ":\n\n"...)
			}
			zip, err := gzip.NewReader(bytes.NewReader(stream))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(zip); err != io.ErrUnexpectedEOF || !bytes.Equal(got, want) {
				t.Fatalf("in the middle: %d bytes, want %d; %v", len(got), len(want), err)
			}
		}
		zip, _ := gzip.NewReader(bytes.NewReader(z.end(stream)))
		if got, err := io.ReadAll(zip); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("at the end: %d bytes, want %d; %v", len(got), len(want), err)
		}
	}
}

// TestGzippedIsReadAtOnce checks that Go's gzip reader returns each piece as soon as it arrives.
func TestGzippedIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		defer in.Close()
		var mu sync.Mutex
		var got []byte
		go func() {
			zip, err := gzip.NewReader(in)
			for p := make([]byte, 4096); err == nil; {
				var n int
				n, err = zip.Read(p)
				mu.Lock()
				got = append(got, p[:n]...)
				mu.Unlock()
			}
		}()
		var p press
		var z gzipped
		want := ""
		send := func(bytes []byte, text string) {
			_, _ = out.Write(bytes)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if want += text; string(got) != want {
				t.Fatalf("read %q, want %q", got, want)
			}
		}
		shared := p.press([]byte("for all"))
		_, _ = io.WriteString(out, gzipHead)
		for range 3 {
			send(z.addOwn(nil, "for one"), "for one")
			z.add([]byte("for all"))
			send(shared, "for all")
		}
	})
}
