package cli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/notify"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/serve"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// serve serves until a signal.
func (a *app) serve(ctx context.Context, f *serveFlags) error {
	if err := a.checkDemo(f); err != nil {
		return err
	}
	var at addresses
	defer at.close()
	if err := at.read(a, f); err != nil {
		return err
	}
	o, err := a.serveOptions(f)
	if err != nil {
		return err
	}
	manager, err := notify.Find(a.getenv)
	if err != nil {
		return exit.Errorf(exit.Config, "serve: %w", err)
	}
	engine, store, err := a.served(ctx, f)
	if err != nil {
		return err
	}
	defer engine.Close()
	o.Engine, o.Server.Store = engine, store
	if f.demo {
		o.Server.Notice = demo.Notice
	}
	s, err := serve.New(*o)
	if err != nil {
		return exit.FromStore(err)
	}
	if err := at.open(ctx); err != nil {
		s.Shutdown(ctx)
		if serve.IsRefused(err) {
			return exit.Errorf(exit.Config, "serve: %w", err)
		}
		return exit.Errorf(exit.Unavailable, "serve: %w", err)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	a.begin(s, &at, o, store)
	if f.demo {
		clients := demo.Start(engine, s.API(), f.demoSeed)
		defer clients.Stop()
	}
	quiet := manager.Ping(notify.Watchdog(a.getenv))
	defer quiet()
	manager.Tell("READY=1", "STATUS=serving "+store)
	return a.attend(ctx, s, manager, o.Log, signals)
}

// begin serves on all listeners, and prints their URLs.
func (a *app) begin(s *serve.Service, at *addresses, o *serve.Options, store string) {
	for _, l := range at.locks {
		s.Serve(l)
		url := serve.URL(l, o.Certificate != nil)
		o.Log.Info("listening", "url", url, "store", store)
		if serve.IsPublic(l.Addr()) && o.Certificate == nil {
			o.Log.Warn("the network can read all requests, tokens included: give --tls-cert, or use a proxy", "url", url)
		}
		if err := a.answer(nil, url+"\n"); err != nil {
			o.Log.Warn("the URL cannot be printed", "error", err)
		}
	}
	if at.metrics != nil {
		s.ServeMetrics(at.metrics)
		o.Log.Info("listening for metrics", "url", serve.URL(at.metrics, false)+"/metrics")
	}
}

// attend handles signals until s has ended.
func (a *app) attend(ctx context.Context, s *serve.Service, manager *notify.Manager, log *slog.Logger, signals <-chan os.Signal) (err error) {
	for serving := true; serving; {
		select {
		case got := <-signals:
			log.Info("a signal", "signal", got.String())
			if serving = got == syscall.SIGHUP; serving {
				s.Reload()
			}
		case err = <-s.Failed():
			err = exit.Errorf(exit.Unavailable, "serve: %w", err)
			serving = false
		}
	}
	manager.Tell("STOPPING=1", "STATUS=draining")
	done := make(chan struct{})
	go func() { // ends after --drain, or with the program
		defer close(done)
		s.Shutdown(ctx)
	}()
	for {
		select {
		case got := <-signals:
			if got != syscall.SIGHUP {
				return &exit.Error{Status: exit.Signal(got.(syscall.Signal)), EndBy: time.Now()}
			}
		case <-done:
			log.Info("drained: no lock was released")
			return err
		}
	}
}

// addresses are the addresses on which a server listens.
type addresses struct {
	wanted    []net.Addr // for locks, to be opened
	metricsAt net.Addr   // or nil

	locks   []net.Listener
	metrics net.Listener // or nil
}

// read reads the addresses, and refuses those that other hosts can reach unless the user allows
// them.
func (at *addresses) read(a *app, f *serveFlags) (err error) {
	texts := f.listen
	if at.locks, err = serve.Inherited(a.getenv); err != nil {
		return exit.Errorf(exit.Config, "serve: %w", err)
	}
	if len(at.locks)+len(texts) == 0 {
		texts = []string{serve.DefaultAddress}
	}
	for _, text := range texts {
		address, err := serve.ParseAddress(text)
		if err != nil {
			return usage("serve: --listen %w", err)
		}
		if err := f.mayListen(address); err != nil {
			return err
		}
		at.wanted = append(at.wanted, address)
	}
	for _, l := range at.locks {
		if err := f.mayListen(l.Addr()); err != nil {
			return err
		}
	}
	if f.metrics != "" {
		if at.metricsAt, err = serve.ParseAddress(f.metrics); err != nil {
			return usage("serve: --metrics-listen %w", err)
		}
	}
	return nil
}

// open listens on the addresses.
func (at *addresses) open(ctx context.Context) (err error) {
	for _, address := range at.wanted {
		l, err := serve.Listen(ctx, address)
		if err != nil {
			return fmt.Errorf("--listen %s: %w", address, err)
		}
		at.locks = append(at.locks, l)
	}
	if at.metricsAt != nil {
		if at.metrics, err = serve.Listen(ctx, at.metricsAt); err != nil {
			return fmt.Errorf("--metrics-listen %s: %w", at.metricsAt, err)
		}
	}
	return nil
}

// close closes the listeners that are not served.
func (at *addresses) close() {
	for _, l := range append(at.locks, at.metrics) {
		if l != nil {
			_ = l.Close() // a socket without requests
		}
	}
}

// mayListen refuses an address that other hosts can reach, unless --callers or --insecure is
// given.
func (f *serveFlags) mayListen(address net.Addr) error {
	if !serve.IsPublic(address) || f.callers != "" || f.insecure {
		return nil
	}
	return exit.Errorf(exit.Config, "serve: other hosts can reach %s, and may do everything there: "+
		"give --callers, or listen on 127.0.0.1, or give --insecure if you want that", address)
}

// serveOptions reads all flags except addresses, and the files that they name.
func (a *app) serveOptions(f *serveFlags) (o *serve.Options, err error) {
	o = &serve.Options{Drain: f.drain, Metrics: f.metrics != "", Version: currentVersion().Version}
	o.Server.Hosts = f.hosts
	if o.Server.Limits, err = parseLimits(f.limits); err != nil {
		return nil, err
	}
	if o.Log, o.AccessLog, err = a.serveLog(f.log); err != nil {
		return nil, err
	}
	slog.SetDefault(o.Log) // for the warnings of the engine
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return nil, usage("serve: --tls-cert and --tls-key go together")
	}
	if f.tlsCert != "" {
		if o.Certificate, err = serve.LoadCertificate(f.tlsCert, f.tlsKey, o.Log); err != nil {
			return nil, exit.Errorf(exit.Config, "serve: %w", err)
		}
		o.Files = append(o.Files, o.Certificate)
	}
	if f.callers != "" {
		callers, err := caller.Open(f.callers, &caller.FileOptions{Logger: o.Log, Verifier: serve.NewIssuers(o.Log).Verifier})
		if err != nil {
			return nil, exit.Errorf(exit.Config, "serve: --callers: %w", err)
		}
		o.Server.Callers = callers
		o.Files = append(o.Files, callers)
	}
	if f.secretFile != "" {
		if o.Server.Secret, err = readSecret(f.secretFile); err != nil {
			return nil, exit.Errorf(exit.Config, "serve: --secret-file: %w", err)
		}
	}
	return o, nil
}

// parseLimits reads the arguments of --limit.
func parseLimits(given []string) (server.Limits, error) {
	l := server.Limits{Waiters: 10_000, Streams: 5_000, Leases: 100_000, Kept: 64 << 20}
	limits := map[string]*int{"waiters": &l.Waiters, "streams": &l.Streams, "leases": &l.Leases, "kept": &l.Kept}
	for _, text := range given {
		name, number, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(number)
		if limits[name] == nil || err != nil || n < 1 {
			return l, usage("serve: --limit %q: want waiters, streams, leases or kept, and a number, as in waiters=100", text)
		}
		*limits[name] = n
	}
	return l, nil
}

// minSecret is the least length of a secret, in bytes.
const minSecret = 32

// readSecret reads a secret. It refuses a file that every user may read.
func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("%s has a secret in it, and every user may open it: chmod o= %[1]s", path)
	}
	secret, err := os.ReadFile(path)
	if secret = bytes.TrimSpace(secret); err == nil && len(secret) < minSecret {
		err = fmt.Errorf("%s has %d bytes, want %d or more: head -c 32 /dev/urandom | base64 makes some", path, len(secret), minSecret)
	}
	return secret, err
}

// serveLog returns the log of the server that the words of --log describe, and whether it
// includes each request. The log writes each line at once and waits for the reader, so that no
// line is lost.
func (a *app) serveLog(words string) (log *slog.Logger, requests bool, err error) {
	text, level := a.screen != nil, slog.LevelInfo
	for word := range strings.SplitSeq(words, ",") {
		switch word {
		case "text", "json":
			text = word == "text"
		case "debug", "info", "warn", "error":
			_ = level.UnmarshalText([]byte(word)) // it knows these words
		case "requests":
			requests = true
		case "":
		default:
			return nil, false, usage("serve: --log %q: want some of text, json, debug, info, warn, error and requests, with commas", word)
		}
	}
	options := &slog.HandlerOptions{Level: level}
	if text {
		return slog.New(slog.NewTextHandler(a.stderr, options)), requests, nil
	}
	return slog.New(slog.NewJSONHandler(a.stderr, options)), requests, nil
}
