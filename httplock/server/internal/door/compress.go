package door

import (
	"compress/gzip"
	"github.com/holdfast-locks/holdfast/internal/header"
	"net/http"
)

// Compressed returns the writer for a long response, which compresses for clients that
// accept it. The handler must call end after the last write.
func Compressed(w http.ResponseWriter, r *http.Request) (to http.ResponseWriter, end func()) {
	w.Header().Add("Vary", "Accept-Encoding")
	if !header.TakesGzip(r.Header) {
		return w, func() {}
	}
	c := &compressed{ResponseWriter: w}
	return c, c.end
}

// compressed compresses a response of status 200.
type compressed struct {
	http.ResponseWriter
	zip *gzip.Writer
}

// Unwrap is for http.ResponseController.
func (c *compressed) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *compressed) WriteHeader(status int) {
	if status == http.StatusOK {
		c.Header().Set("Content-Encoding", "gzip")
		c.Header().Del("Content-Length")
		c.zip = gzip.NewWriter(c.ResponseWriter)
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *compressed) Write(p []byte) (int, error) {
	if c.zip == nil {
		return c.ResponseWriter.Write(p)
	}
	return c.zip.Write(p)
}

func (c *compressed) end() {
	if c.zip != nil {
		_ = c.zip.Close() // the client may be gone
	}
}
