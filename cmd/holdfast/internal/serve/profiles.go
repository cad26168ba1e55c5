package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// handleProfiles serves go tool pprof and go tool trace. Linking net/http/pprof instead would
// allocate 6 KB more before main, in every run of every command.
func handleProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/{$}", func(w http.ResponseWriter, _ *http.Request) {
		for _, p := range pprof.Profiles() {
			_, _ = fmt.Fprintf(w, "%s %d\n", p.Name(), p.Count())
		}
		_, _ = io.WriteString(w, "profile ?seconds=30\ntrace ?seconds=1\n")
	})
	mux.HandleFunc("GET /debug/pprof/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := pprof.Lookup(r.PathValue("name"))
		if p == nil {
			http.NotFound(w, r)
			return
		}
		debug, _ := strconv.Atoi(r.FormValue("debug")) // 0 is what programs read
		_ = p.WriteTo(w, debug)                        // a caller that is gone needs no profile
	})
	mux.HandleFunc("GET /debug/pprof/profile", during(30, pprof.StartCPUProfile, pprof.StopCPUProfile))
	mux.HandleFunc("GET /debug/pprof/trace", during(1, trace.Start, trace.Stop))
}

// maxProfile is how long a profile may take, in seconds.
const maxProfile = 300

// during answers with what is recorded for so many seconds, unless the request says for
// how many, or until the caller hangs up.
func during(standard int, start func(io.Writer) error, stop func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.Atoi(r.FormValue("seconds"))
		if err != nil || seconds < 1 {
			seconds = standard
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(min(seconds, maxProfile))*time.Second)
		defer cancel()
		w.Header().Set("Content-Type", "application/octet-stream")
		if err := start(w); err != nil {
			http.Error(w, err.Error(), http.StatusConflict) // somebody else records
			return
		}
		<-ctx.Done()
		stop()
	}
}
