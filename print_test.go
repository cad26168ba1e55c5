package holdfast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// A scene is a store with something of every kind, and all values of it that a program can have.
type scene struct {
	c      *holdfast.Client
	lease  *holdfast.Lease
	lock   holdfast.LockState
	waits  []holdfast.WaitState
	things []any

	mu     sync.Mutex // guards events
	events []holdfast.Event
}

// newScene makes a scene with a lock that is held, waited for, broken and refused, and do-once
// work.
func newScene(t *testing.T) *scene {
	ctx := t.Context()
	s := &scene{}
	deploy := holdfast.Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"}
	engine, opts := mem.New(nil), &holdfast.Options{Holder: deploy, Observer: func(e holdfast.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}}
	s.c = newClient(t, engine, opts)
	other := newClient(t, engine, opts)
	s.lease = mustAcquire(t, s.c, "orders/42", nil)
	all, err := s.c.TryAcquireAll(s.lease.Context(), []string{"b", "c"}, nil)
	wantErr(t, err, nil)
	broken := mustAcquire(t, s.c, "broken", &holdfast.AcquireOptions{Mode: holdfast.Permits(2, 5)})
	time.Sleep(12 * time.Minute)
	breaks, err := other.Break(ctx, "broken", &holdfast.BreakOptions{Author: "ada", Reason: "its node is gone"})
	wantErr(t, err, nil)
	wantErr(t, broken.Release(ctx), holdfast.ErrBroken)
	_, held := other.TryAcquire(ctx, "orders/42", nil)

	acquire := &holdfast.AcquireOptions{MaxWait: time.Minute, OnWait: func(w holdfast.WaitState) { s.waits = append(s.waits, w) }}
	waiter := enqueue(ctx, other, "orders/42", acquire)
	s.lock, err = other.Inspect(ctx, "orders/42")
	wantErr(t, err, nil)
	wantErr(t, (<-waiter).err, holdfast.ErrHeld)

	run, err := s.c.OnceBegin(ctx, "k", nil)
	wantErr(t, err, nil)
	_, busy := other.OnceBegin(ctx, "k", nil)
	var heldError *holdfast.HeldError
	var progress *holdfast.InProgressError
	var breakError *holdfast.BrokenError
	if !errors.As(held, &heldError) || !errors.As(busy, &progress) || !errors.As(broken.Release(ctx), &breakError) {
		t.Fatal(held, busy, breakError)
	}
	running, err := other.Records().Once(ctx, "k")
	wantErr(t, err, nil)
	wantErr(t, run.Complete(ctx, []byte("the secret result")), nil)
	replayed, err := other.OnceBegin(ctx, "k", nil)
	wantErr(t, err, nil)
	result := replayed.Result()
	entry, err := other.Records().Once(ctx, "k")
	wantErr(t, err, nil)
	done, err := other.Records().Result(ctx, "k")
	wantErr(t, err, nil)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.things = []any{
		s.c, s.c.Records(), s.lease, all, run, replayed, s.lease.Context(), all.Context(), s.lease.Holder(), s.lock, &s.lock, s.lock.Holders, s.lock.Holders[0], s.lock.Queue,
		s.lock.Queue[0], breaks, breaks[0], *heldError, heldError, held, *progress, progress, busy, *breakError, breakError, s.waits, s.waits[0],
		result, &result, entry, running, done, s.events, s.events[0], &s.events[0], *opts, *acquire,
		holdfast.EveryRun{Lease: s.lease}, holdfast.ScheduleState{Leader: s.lease.Holder()}, holdfast.EveryOptions{}, holdfast.ScheduleRecord{},
		holdfast.DoneRun{}, holdfast.BegunRun{}, holdfast.MissedRuns{},
		holdfast.NewHandle("orders/42", s.lease.ID(), s.lease.Token(), holdfast.Exclusive), holdfast.AdoptOptions{}, holdfast.BreakOptions{}, holdfast.LeadOptions{}, holdfast.OnceOptions{},
	}
	return s
}

// ids returns every lease ID of the scene.
func (s *scene) ids(t *testing.T) (all []string) {
	for _, e := range s.events {
		all = append(all, string(e.LeaseID))
	}
	all = append(all, string(s.lease.ID()), string(s.lock.Holders[0].LeaseID), string(s.lock.Queue[0].LeaseID))
	for _, id := range all {
		need(t, len(id) == 32, "a lease ID is %q", id)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// written returns the texts that a program may print or log of a value, by the way of printing.
func written(thing any) map[string]string {
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		out[verb] = fmt.Sprintf(verb, thing)
	}
	out["in a struct"] = fmt.Sprintf("%+v", struct{ Thing any }{thing})
	for way, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"slog text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"slog JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		slog.New(handler(&b)).Info("it", "thing", thing, slog.Group("group", slog.Any("thing", thing)))
		out[way] = b.String()
	}
	text, err := json.Marshal(thing)
	out["JSON"] = fmt.Sprint(string(text), err)
	return out
}

// TestPrintingGivesNoLeaseID checks that what a program logs contains neither lease IDs, with which
// others could release leases, nor results.
func TestPrintingGivesNoLeaseID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		printed := map[string]bool{}
		for _, thing := range s.things {
			printed[reflect.Indirect(reflect.ValueOf(thing)).Type().Name()] = true
			for way, text := range written(thing) {
				if _, is := thing.(holdfast.Handle); is && way == "JSON" {
					continue // its MarshalText, which passes the lease on
				}
				for _, id := range s.ids(t) {
					expect(t, !strings.Contains(text, id) && !strings.Contains(text, fmt.Sprintf("%x", id)), "%T by %s has a lease ID in it: %s", thing, way, text)
				}
				if way != "JSON" && way != "slog JSON" && strings.Contains(text, "secret result") {
					t.Errorf("%T by %s has the result in it: %s", thing, way, text)
				}
			}
		}
		for name := range exportedStructs(t) {
			expect(t, printed[name], "this test does not print a holdfast.%s", name)
		}
	})
}

// exportedStructs returns the names of the exported structs of package holdfast.
func exportedStructs(t *testing.T) map[string]bool {
	files, err := os.ReadDir(".")
	must(t, err)
	all := map[string]bool{}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		must(t, err)
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			_, isStruct := spec.Type.(*ast.StructType)
			if name := spec.Name.Name; isStruct || spec.Assign != 0 && isStructElsewhere[name] {
				all[name] = true
			}
			return true
		})
	}
	expect(t, len(all) >= 18, "%d structs: are they found?", len(all))
	return all
}

// isStructElsewhere contains the aliases in package holdfast of structs of other packages.
var isStructElsewhere = map[string]bool{
	"Broken": true, "BrokenError": true, "Event": true, "Holder": true, "Holding": true, "LockState": true, "Place": true,
}

// TestPrintedWords checks that values are printed in words, the same in each way.
func TestPrintedWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		const deploy = "deploy@web-3 (pid 812, deploy.sh)"
		for _, tt := range []struct {
			thing any
			want  string
		}{
			{s.lease, fmt.Sprintf(`exclusive lease of "orders/42", token %d`, s.lease.Token())},
			{s.c, "holdfast client of " + deploy},
			{s.lock, fmt.Sprintf(`"orders/42": held by %s for 12m, token %d; 1 waits`, deploy, s.lease.Token())},
			{s.lock.Holders[0], fmt.Sprintf(`held by %s for 12m, token %d`, deploy, s.lease.Token())},
			{s.lock.Queue[0], deploy + " waits for the exclusive lock"},
			{holdfast.LockState{Name: "free"}, `"free": held by nobody`},
			{holdfast.Place{Mode: holdfast.Permits(2, 5)}, "another client waits for 2 of 5 permits"},
			{holdfast.Place{Mode: holdfast.Shared, Since: 12 * time.Second}, "another client has waited for the shared lock for 12s"},
			{s.waits[0], `"orders/42": held by ` + deploy + " for 12m; place 1 of 1"},
			{holdfast.WaitState{Name: "a", Waited: 3 * time.Second, Outage: errLink}, `"a": the store does not answer: connection reset; waited 3s`},
			{holdfast.WaitState{Name: "a"}, `"a": held by another client`},
			{holdfast.OnceResult{Value: []byte("x y"), Token: 7}, "result of 3 bytes, token 7"},
			{holdfast.OnceResult{Replayed: true, Token: 7}, "result of 0 bytes, token 7, replayed"},
			{holdfast.Broken{Token: 7, Holder: s.lease.Holder(), Author: "ada", Reason: "its node is gone", Ago: 5 * time.Minute},
				"lease of " + deploy + ", token 7: broken by ada: its node is gone, 5m ago"},
			{holdfast.KeepAliveOff, "off"}, {holdfast.KeepAliveOn, "on"}, {holdfast.KeepAlive(7), "unknown"},
			{holdfast.Permits(2, 5), "2 of 5 permits"}, {holdfast.OnceInProgress, "in progress"}, {holdfast.OnceState(-1), "unknown"},
		} {
			for _, got := range []string{fmt.Sprint(tt.thing), fmt.Sprintf("%+v", tt.thing)} {
				expect(t, got == tt.want, "%T is %q, want %q", tt.thing, got, tt.want)
			}
		}
		for want, thing := range map[string]any{
			fmt.Sprintf(`{"name":"orders/42","mode":"exclusive","token":%d}`, s.lease.Token()):                s.lease,
			`{"name":"orders/42","mode":"exclusive"`:                                                          s.lock,
			`{"name":"orders/42","state":"held by ` + deploy + ` for 12m","place":1,"queue":1,"waited":0}`:    s.waits[0],
			`{"bytes":1,"token":7,"replayed":true}`:                                                           holdfast.OnceResult{Value: []byte("x"), Token: 7, Replayed: true},
			`{"kind":"acquired","name":"orders/42","mode":"exclusive","token":` + fmt.Sprint(s.lease.Token()): s.events[0],
		} {
			got := written(thing)["slog JSON"]
			expect(t, strings.Contains(got, `"thing":`+want), "%T is logged as %s, want %s", thing, got, want)
		}
	})
}

// TestPrintedInUse checks that leases and clients can be printed while they are in use.
func TestPrintedInUse(t *testing.T) {
	c := newClient(t, mem.New(nil), nil)
	l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 20 * time.Millisecond}) // renewed while it is printed
	ctx := context.WithValue(l.Context(), "key", l)                                   //nolint:staticcheck // no other package sees it
	for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
		for _, thing := range []any{l, c, ctx} {
			written(thing)
		}
	}
	l.Release(t.Context())
}

// TestEnumerationsAreWords checks that enumerations are words in JSON.
func TestEnumerationsAreWords(t *testing.T) {
	got, err := json.Marshal([]any{holdfast.Renewed, holdfast.OutageBegan, holdfast.OnceInProgress, holdfast.Shared, holdfast.KeepAliveOff})
	want := `["renewed","outage-began","in progress","shared","off"]`
	expect(t, err == nil && string(got) == want, "%s, %v; want %s", got, err, want)
}

// TestOptionsThroughJSON checks that options stay the same through JSON. The command passes them in
// this way to the keeper of a script.
func TestOptionsThroughJSON(t *testing.T) {
	type all struct {
		Adopt     holdfast.AdoptOptions
		KeepAlive holdfast.KeepAlive
		State     holdfast.OnceState
	}
	for _, sent := range []all{
		{},
		{
			holdfast.AdoptOptions{TTL: time.Minute, MaxHold: time.Hour, KeepAlive: holdfast.KeepAliveOff},
			holdfast.KeepAliveOff, holdfast.OnceDone,
		},
		{State: holdfast.OnceInProgress},
		{State: holdfast.OnceScheduled},
	} {
		text, err := json.Marshal(sent)
		must(t, err)
		var got all
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, sent) {
			t.Errorf("%s arrives as %+v (%v)", text, got, err)
		}
	}
	for _, wrong := range []string{`{"Adopt":{"KeepAlive":"perhaps"}}`, `{"State":"done?"}`} {
		if err := json.Unmarshal([]byte(wrong), new(all)); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", wrong, err)
		}
	}
}

// A logBuffer receives the log of a test.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSuffix(b.text.String(), "\n"), "\n")
}

// TestLossesAreLogged checks that without an Observer a loss and a failed clean-up are each logged
// in one line, with the name, the reason and what to do, but without the lease ID.
func TestLossesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, log := newFaulty(), &logBuffer{}
		c := newClient(t, engine, &holdfast.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
		lost, kept := mustAcquire(t, c, "orders/42", nil), mustAcquire(t, c, "orders/43", nil)
		takeAway(t, engine.Engine, "orders/42")
		wantErr(t, lost.Verify(t.Context()), holdfast.ErrLost)
		wantErr(t, lost.Release(t.Context()), holdfast.ErrLost)
		synctest.Wait()
		engine.set(fail(driver.ErrPermission, "release"), nil)
		wantErr(t, kept.Release(t.Context()), holdfast.ErrPermission)
		synctest.Wait()
		lines := log.lines()
		for i, want := range [][]string{
			{"level=WARN", "name=orders/42", "no longer has it", "stop what it protects"},
			{"level=WARN", "name=orders/43", "not permitted", "stays closed"},
		} {
			for _, part := range want {
				expect(t, i < len(lines) && strings.Contains(lines[i], part), "line %d of %q, want %q in it", i, lines, part)
			}
		}
		expect(t, len(lines) == 2 && !strings.Contains(strings.Join(lines, ""), string(lost.ID())), "logged: %q", lines)
		engine.heal()
	})
}

// TestDefaultLogger checks that without a Logger the client uses the present slog.Default.
func TestDefaultLogger(t *testing.T) {
	was := slog.Default()
	defer slog.SetDefault(was)
	log := &logBuffer{}
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
		must(t, err)
		slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
		l := mustAcquire(t, c, "a", nil)
		takeAway(t, engine.Engine, "a")
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
		if err := c.Close(); err != nil { // Close waits for the log, too
			t.Error(err)
		}
	})
	lines := log.lines()
	expect(t, len(lines) == 1 && strings.Contains(lines[0], "a lease is lost"), "logged: %q", lines)
}

// TestPrintingAHandleGivesNoLeaseID checks that only MarshalText, and so JSON, contains the lease
// ID of a handle.
func TestPrintingAHandleGivesNoLeaseID(t *testing.T) {
	h := holdfast.NewHandle("deploy", handleID, 42, holdfast.Exclusive)
	for way, text := range written(h) {
		has := strings.Contains(text, handleID) || strings.Contains(text, fmt.Sprintf("%x", handleID))
		expect(t, has == (way == "JSON"), "by %s: %s", way, text)
	}
	if got, want := h.String(), `handle of the exclusive lease of "deploy", token 42`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Info("it", "handle", h)
	want := `"handle":{"name":"deploy","mode":"exclusive","token":42}`
	expect(t, strings.Contains(b.String(), want), "%s, want %s", &b, want)
}
