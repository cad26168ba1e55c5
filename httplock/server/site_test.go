package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A site is a server whose store has something of each kind.
type site struct {
	http.Handler
	engine *mem.Engine
	log    *bytes.Buffer
	held   lockinfo.LeaseID // lease of bank/held
	queued lockinfo.LeaseID // waits for bank/held
	token  uint64
	close  func() error
}

// bearer is a token that is easy to find in any text.
const bearer = "marker-of-a-bearer-token"

// tokens maps the tokens of callers to the callers.
var tokens = map[string]*caller.Caller{
	"all":   {Name: "all", Rights: caller.All},
	bearer:  {Name: "all", Rights: caller.All},
	"plain": {Name: "plain", Rights: caller.All &^ caller.Admin},
	"eve":   {Name: "eve", Rights: caller.All &^ caller.Admin},
	"ci":    {Name: "ci", Rights: caller.All, Prefixes: []string{"ci/"}},
}

// without returns the token of a caller who has all rights but the given ones.
func without(rights caller.Rights) string { return "without-" + rights.String() }

func identify(r *http.Request) (*caller.Caller, error) {
	token, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !shown {
		return nil, nil
	}
	if c := tokens[token]; c != nil {
		return c, nil
	}
	if names, ok := strings.CutPrefix(token, without(0)); ok {
		rights, err := caller.ParseRights(strings.Split(names, ","))
		return &caller.Caller{Name: token, Rights: caller.All &^ rights}, err
	}
	return nil, caller.Wrong("the token is not one that the server knows")
}

const hour = time.Hour

// newSite returns a site. The test must call close.
func newSite(tb testing.TB) *site {
	tb.Helper()
	s := &site{engine: mem.New(&mem.Options{History: true}), log: &bytes.Buffer{}, held: lockinfo.NewLeaseID(), queued: lockinfo.NewLeaseID()}
	if err := s.fill(context.Background()); err != nil {
		tb.Fatal(err)
	}
	srv, err := server.New(s.engine, &server.Options{
		Callers: sourceFunc(identify), Secret: []byte("the secret of all servers of this store"),
		Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		tb.Fatal(err)
	}
	s.Handler = exchange.Recorded(tb, srv)
	s.close = func() error { return errors.Join(srv.Close(context.Background()), s.engine.Close()) }
	return s
}

// fill puts something of each kind into the store.
func (s *site) fill(ctx context.Context) error {
	acquire := func(req driver.AcquireRequest) uint64 {
		req.TTL = hour
		req.Holder = lockinfo.Holder{Host: "web-3", Label: "nightly"}
		reply, err := s.engine.Acquire(ctx, req)
		if err != nil {
			panic(err)
		}
		return reply.Token
	}
	s.token = acquire(driver.AcquireRequest{Name: "bank/held", LeaseID: s.held})
	acquire(driver.AcquireRequest{Name: "bank/held", LeaseID: s.queued, Queue: true, WaiterTTL: hour})
	acquire(driver.AcquireRequest{Name: "bank/shared", LeaseID: lockinfo.NewLeaseID(), Mode: lockinfo.Shared})
	acquire(driver.AcquireRequest{Name: "bank/seats", LeaseID: lockinfo.NewLeaseID(), Mode: lockinfo.Permits(2, 3)})
	acquire(driver.AcquireRequest{Name: "holdfast@server/secret", LeaseID: lockinfo.NewLeaseID()})
	broken := lockinfo.NewLeaseID()
	token := acquire(driver.AcquireRequest{Name: "bank/broken", LeaseID: broken})
	_, err1 := s.engine.Break(ctx, driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "bank/broken", Token: token, Author: "ada", Reason: "stuck"})
	done := lockinfo.NewLeaseID()
	acquire(driver.AcquireRequest{Name: "bank/done", LeaseID: done, Once: true})
	err2 := s.engine.Complete(ctx, driver.CompleteRequest{Name: "bank/done", LeaseID: done, Record: []byte("kept"), Retention: hour})
	err3 := s.engine.Deposit(ctx, driver.DepositRequest{Digest: driver.Digest(digest[len(`"digest":"`) : len(digest)-1]), By: lockinfo.NewLeaseID(), Payload: []byte("x"), TTL: hour, Memory: 2 * hour})
	return errors.Join(err1, err2, err3)
}

// state returns everything in the store as text. The text does not change while virtual time stands
// still.
func (s *site) state(tb testing.TB) string {
	tb.Helper()
	ctx := context.Background()
	var all []string
	note := func(what string, v any, err error) {
		if err != nil {
			tb.Fatal(err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s", what, text))
	}
	for lock, err := range s.engine.List(ctx, "") {
		note("listed", lock, err)
		details, err := s.engine.Inspect(ctx, lock.Name)
		note("lock", details, err)
		breaks, err := s.engine.Breaks(ctx, lock.Name)
		note("breaks", breaks, err)
		history, err := s.engine.History(ctx, lock.Name)
		note("history", history, err)
	}
	for record, err := range s.engine.ListRecords(ctx, "") {
		note("record", record, err)
	}
	peeked, err := s.engine.Peek(ctx, driver.Proof(proof[len(`"proof":"`):len(proof)-1]))
	note("deposit", peeked, err)
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// filled returns text with the lease of bank/held in it. The replaced strings have a quotation mark
// or colon, so that they cannot occur in a random secret.
func (s *site) filled(text string) string {
	return strings.NewReplacer(`"ID"`, strconv.Quote(string(s.held)), ":TOKEN", ":"+strconv.FormatUint(s.token, 10)).Replace(text)
}

// request returns a request with the headers that clients of both kinds send.
func (s *site) request(ctx context.Context, token, method, target, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(s.filled(body)))
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Idempotency-Key", "0123456789-0123456789")
	r.Header.Set("Holdfast-Client", strings.Trim(other, `"`))
	return r
}

// send serves a request, and returns the reply.
func (s *site) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}
