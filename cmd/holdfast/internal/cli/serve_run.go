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
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/notify"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/oidc"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/serve"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// serve serves until a signal.
func (a *app) serve(ctx context.Context, f *serveFlags) error {
	if err := a.checkDemo(f); err != nil {
		return err
	}
	places, err := a.places(f)
	if err != nil {
		return err
	}
	defer places.close()
	o, err := a.serveOptions(f)
	if err != nil {
		return err
	}
	manager, err := notify.Find(a.asked.Getenv)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("serve: %w", err))
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
	if err := places.open(ctx); err != nil {
		s.Shutdown(ctx)
		return exit.With(exit.Unavailable, fmt.Errorf("serve: %w", err))
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	a.begin(s, places, o, store)
	if f.demo {
		fleet := demo.Start(engine, s.API(), f.demoSeed)
		defer fleet.Stop()
	}
	quiet := manager.Ping(notify.Watchdog(a.asked.Getenv))
	defer quiet()
	manager.Tell("READY=1", "STATUS=serving "+store)
	return a.attend(ctx, s, manager, o.Log, signals)
}

// begin serves at all places, and tells where that is.
func (a *app) begin(s *serve.Service, at *places, o *serve.Options, store string) {
	for _, l := range at.locks {
		s.Serve(l)
		url := serve.URL(l, o.Certificate != nil)
		o.Log.Info("listening", "url", url, "store", store)
		if serve.IsPublic(l.Addr()) && o.Certificate == nil {
			o.Log.Warn("whoever is on the way can read what is sent, tokens included: give --tls-cert, or put a proxy in front", "url", url)
		}
		if err := a.answer(nil, url+"\n"); err != nil {
			o.Log.Warn("standard output takes nothing", "error", err)
		}
	}
	if at.metrics != nil {
		s.ServeMetrics(at.metrics)
		o.Log.Info("listening for metrics", "url", serve.URL(at.metrics, false)+"/metrics")
	}
	if at.profiles != nil {
		s.ServeProfiles(at.profiles)
		o.Log.Info("listening for go tool pprof", "url", serve.URL(at.profiles, false)+"/debug/pprof/")
	}
}

// attend does what signals ask for, until s has ended.
func (a *app) attend(ctx context.Context, s *serve.Service, manager *notify.Manager, log *slog.Logger, signals <-chan os.Signal) (err error) {
	for serving := true; serving; {
		select {
		case got := <-signals:
			log.Info("a signal", "signal", got.String())
			if serving = got == syscall.SIGHUP; serving {
				s.Reload()
			}
		case err = <-s.Failed():
			err = exit.With(exit.Unavailable, fmt.Errorf("serve: %w", err))
			serving = false
		}
	}
	manager.Tell("STOPPING=1", "STATUS=draining")
	over := make(chan struct{})
	go func() { // ends after --drain, or with the program
		defer close(over)
		s.Shutdown(ctx)
	}()
	for {
		select {
		case got := <-signals:
			if got != syscall.SIGHUP {
				return &exit.Error{Status: exit.Signal(int(got.(syscall.Signal))), EndBy: time.Now()}
			}
		case <-over:
			log.Info("drained: no lock was given back")
			return err
		}
	}
}

// Places are where a server listens.
type places struct {
	addresses            []serve.Address // for locks, to be opened
	metricsAt, profileAt serve.Address

	locks             []net.Listener
	metrics, profiles net.Listener // or nil
}

// places reads where to listen. Whoever can reach an address may do everything there, so
// that has to be this host, or what the user wants.
func (a *app) places(f *serveFlags) (at *places, err error) {
	at = &places{}
	defer func() {
		if err != nil {
			at.close()
		}
	}()
	texts := f.listen
	if at.locks, err = serve.Inherited(a.asked.Getenv); err != nil {
		return at, exit.With(exit.Config, fmt.Errorf("serve: %w", err))
	}
	if len(at.locks)+len(texts) == 0 {
		texts = []string{serve.DefaultAddress}
	}
	for _, text := range texts {
		address, err := serve.ParseAddress(text)
		if err != nil {
			return at, usage("serve: --listen %w", err)
		}
		if err := f.mayListen(address, address.Public()); err != nil {
			return at, err
		}
		at.addresses = append(at.addresses, address)
	}
	for _, l := range at.locks {
		if err := f.mayListen(l.Addr(), serve.IsPublic(l.Addr())); err != nil {
			return at, err
		}
	}
	if f.metrics != "" {
		if at.metricsAt, err = serve.ParseAddress(f.metrics); err != nil {
			return at, usage("serve: --metrics-listen %w", err)
		}
	}
	if f.profiles != "" {
		if at.profileAt, err = serve.ParseAddress(f.profiles); err != nil {
			return at, usage("serve: --pprof %w", err)
		}
		if at.profileAt.Public() {
			return at, exit.With(exit.Config, fmt.Errorf("serve: --pprof %s: other hosts can reach it, and profiles show what the program "+
				"has in its memory: want a loopback address", at.profileAt))
		}
	}
	return at, nil
}

// open listens.
func (at *places) open(ctx context.Context) error {
	for _, address := range at.addresses {
		l, err := address.Listen(ctx)
		if err != nil {
			return fmt.Errorf("--listen %s: %w", address, err)
		}
		at.locks = append(at.locks, l)
	}
	var err error
	if at.metricsAt != (serve.Address{}) {
		if at.metrics, err = at.metricsAt.Listen(ctx); err != nil {
			return fmt.Errorf("--metrics-listen %s: %w", at.metricsAt, err)
		}
	}
	if at.profileAt != (serve.Address{}) {
		if at.profiles, err = at.profileAt.Listen(ctx); err != nil {
			return fmt.Errorf("--pprof %s: %w", at.profileAt, err)
		}
	}
	return nil
}

// close closes what nobody serves.
func (at *places) close() {
	for _, l := range append(at.locks, at.metrics, at.profiles) {
		if l != nil {
			_ = l.Close() // a socket without requests
		}
	}
}

// mayListen says why an address is not listened on: other hosts can reach it, and nobody
// has said who may do what.
func (f *serveFlags) mayListen(address fmt.Stringer, public bool) error {
	if !public || f.callers != "" || f.insecure {
		return nil
	}
	return exit.With(exit.Config, fmt.Errorf("serve: other hosts can reach %s, and whoever reaches it may do everything: "+
		"say who may with --callers, or listen on 127.0.0.1, or say --insecure if that is what you want", address))
}

// serveOptions reads the files and flags that are not about places.
func (a *app) serveOptions(f *serveFlags) (o *serve.Options, err error) {
	o = &serve.Options{Drain: f.drain, AccessLog: f.accessLog, Metrics: f.metrics != "", Version: currentVersion().Version}
	o.Server.Hosts, o.Server.Limits = f.hosts, f.limits
	if o.Log, err = a.serveLog(f); err != nil {
		return nil, err
	}
	if f.drain <= 0 || f.drain > time.Hour {
		return nil, usage("serve: --drain %s: want more than 0, and an hour at most", f.drain)
	}
	if l := f.limits; min(l.Waiters, l.Streams, l.Leases) < 1 {
		return nil, usage("serve: --max-waiters, --max-streams and --max-leases: want 1 or more")
	}
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return nil, usage("serve: --tls-cert and --tls-key go together")
	}
	if f.tlsCert != "" {
		if o.Certificate, err = serve.LoadCertificate(f.tlsCert, f.tlsKey, o.Log); err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("serve: %w", err))
		}
		o.Files = append(o.Files, o.Certificate)
	}
	if f.callers != "" {
		callers, err := caller.Open(f.callers, &caller.FileOptions{Logger: o.Log, Verifier: oidc.New(o.Log).Verifier})
		if err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("serve: --callers: %w", err))
		}
		o.Server.Callers = callers
		o.Files = append(o.Files, callers)
	}
	if f.secretFile != "" {
		if o.Server.Secret, err = readSecret(f.secretFile); err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("serve: --secret-file: %w", err))
		}
	}
	return o, nil
}

// minSecret is what a secret must have, in bytes.
const minSecret = 32

// readSecret reads a file that not everybody may read.
func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("%s has a secret in it, and everybody may open it: chmod o= %[1]s", path)
	}
	secret, err := os.ReadFile(path)
	if secret = bytes.TrimSpace(secret); err == nil && len(secret) < minSecret {
		err = fmt.Errorf("%s has %d bytes, want %d or more: head -c 32 /dev/urandom | base64 makes some", path, len(secret), minSecret)
	}
	return secret, err
}

// serveLog returns where the server writes what happens: a line at once, which waits for
// its reader, so that none is lost.
func (a *app) serveLog(f *serveFlags) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil || strings.ContainsAny(f.logLevel, "+-") {
		return nil, usage("serve: --log-level %q: want debug, info, warn or error", f.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	format := f.logFormat
	if format == "" && a.screen != nil {
		format = "text"
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(a.stderr, options)), nil
	case "json", "":
		return slog.New(slog.NewJSONHandler(a.stderr, options)), nil
	}
	return nil, usage("serve: --log-format %q: want text or json", f.logFormat)
}
