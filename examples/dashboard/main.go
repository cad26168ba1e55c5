// Command dashboard serves the page of the locks of a store below /ops/locks/, to operators who
// know the password.
//
//	go run ./dashboard redis://localhost:6379 password.txt
package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/dashboard"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/stores"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 3 {
		log.Fatal("want the URL of the store, and a file with the password")
	}
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, store, passwordFile string) error {
	password, err := os.ReadFile(passwordFile)
	if err != nil {
		return err
	}
	engine, err := stores.Open(ctx, store)
	if err != nil {
		return err
	}
	defer engine.Close()
	page, err := newPage(engine)
	if err != nil {
		return err
	}
	srv := &http.Server{Addr: "127.0.0.1:8080", Handler: routes(page, bytes.TrimSpace(password)), ReadHeaderTimeout: 10 * time.Second}
	srv.RegisterOnShutdown(func() { _ = page.Close(context.Background()) }) // or Shutdown waits for open pages
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ended <- srv.Shutdown(context.Background())
	}()
	log.Print("http://127.0.0.1:8080/ops/locks/")
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

// newPage returns the page. Operators may act on all locks except payments.
func newPage(engine driver.Engine) (*dashboard.Dashboard, error) {
	return dashboard.New(&dashboard.Options{
		Engine: engine,
		Viewer: operator,
		Authorize: func(_ *http.Request, a dashboard.Action) error {
			if strings.HasPrefix(a.Name, "payments/") {
				return errors.New("the locks of payments are for their own team")
			}
			return nil
		},
	})
}

// routes has all that the program answers.
func routes(page http.Handler, password []byte) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/ops/locks/", onlyOperators(http.StripPrefix("/ops/locks", page), password))
	return mux
}

// operator returns the name of the user who sent r.
func operator(r *http.Request) string {
	name, _, _ := r.BasicAuth()
	return name
}

// onlyOperators passes a request to h only if it has a name and the password.
func onlyOperators(h http.Handler, password []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, shown, _ := r.BasicAuth()
		if name == "" || subtle.ConstantTimeCompare([]byte(shown), password) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="operators"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}
