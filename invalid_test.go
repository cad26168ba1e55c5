package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/memlock"
)

// wrong are options that are out of range, of each kind.
var wrong = []any{
	&holdfast.AcquireOptions{TTL: time.Millisecond}, &holdfast.AcquireOptions{Wait: -1}, &holdfast.AcquireOptions{MinHold: 1},
	&holdfast.AcquireOptions{MaxHold: -1}, &holdfast.AcquireOptions{Progress: 1}, &holdfast.AcquireOptions{LockDelay: 1},
	&holdfast.AcquireOptions{KeepAlive: 7}, &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff, Progress: time.Second},
	&holdfast.AcquireOptions{Replicas: -1}, &holdfast.AcquireOptions{MinToken: driver.MaxToken}, &holdfast.AcquireOptions{Mode: 9},
	&holdfast.AcquireOptions{Permits: 2}, &holdfast.AcquireOptions{Mode: holdfast.Semaphore}, &holdfast.AcquireOptions{Reason: "\x1b[2J"},

	&holdfast.LeadOptions{Acquire: holdfast.AcquireOptions{TTL: 1}}, &holdfast.LeadOptions{Acquire: holdfast.AcquireOptions{Mode: holdfast.Shared}},
	&holdfast.LeadOptions{Acquire: holdfast.AcquireOptions{Wait: time.Second}}, &holdfast.LeadOptions{Pause: -1},
	&holdfast.LeadOptions{LongestPause: time.Millisecond},

	&holdfast.OnceOptions{TTL: 1}, &holdfast.OnceOptions{Retention: 1}, &holdfast.OnceOptions{Retention: holdfast.MaxRetention + 1},
	&holdfast.OnceOptions{MaxResult: -1}, &holdfast.OnceOptions{MaxResult: holdfast.MaxOnceResult + 1}, &holdfast.OnceOptions{Wait: time.Second},
	&holdfast.OnceOptions{Fingerprint: "a\nb"}, &holdfast.OnceOptions{MaxHold: 1}, &holdfast.OnceOptions{Progress: -1},

	&holdfast.EveryOptions{TTL: 1}, &holdfast.EveryOptions{Late: -1}, &holdfast.EveryOptions{Attempts: -1}, &holdfast.EveryOptions{Retention: 1},
	&holdfast.EveryOptions{MaxHold: 1}, &holdfast.EveryOptions{Reason: "a\nb"},

	&holdfast.AdoptOptions{}, &holdfast.AdoptOptions{Token: driver.MaxToken + 1}, &holdfast.AdoptOptions{Token: 7, TTL: 1},
	&holdfast.AdoptOptions{Token: 7, Limit: 2}, &holdfast.AdoptOptions{Token: 7, KeepAlive: -1}, &holdfast.AdoptOptions{Token: 7, MaxHold: 1},

	&holdfast.BreakOptions{Token: driver.MaxToken + 1}, &holdfast.BreakOptions{Author: "a\nb"},
	&holdfast.BreakOptions{Reason: strings.Repeat("x", driver.MaxReason+1)},
}

// TestUsesAreAll: nothing that needs a client is missing from the table of uses.
func TestUsesAreAll(t *testing.T) {
	known := map[string]bool{}
	for _, name := range noUses {
		known[name] = true
	}
	for name := range uses {
		known[name] = true
	}
	for m := range reflect.TypeFor[*holdfast.Client]().NumMethod() {
		if name := reflect.TypeFor[*holdfast.Client]().Method(m).Name; !known[name] {
			t.Errorf("Client.%s is not in uses", name)
		}
	}
	n := 0
	eachDeclaration(t, func(d ast.Decl) {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && takesClient(f) {
			if n++; !known[f.Name.Name] {
				t.Errorf("%s is not in uses", f.Name.Name)
			}
		}
	})
	if n < 4 {
		t.Errorf("%d functions take a client: are they found?", n)
	}
}

// eachDeclaration calls f with each declaration of package holdfast.
func eachDeclaration(t *testing.T, f func(ast.Decl)) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f(d)
		}
	}
}

func takesClient(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		if star, ok := p.Type.(*ast.StarExpr); ok {
			if name, ok := star.X.(*ast.Ident); ok && name.Name == "Client" {
				return true
			}
		}
	}
	return false
}

// TestWrongUses: no client, a closed one or a closed store, no work, and names and options
// that are out of range give the documented error, whatever they are given to. Nothing is
// sent, nothing panics, and nothing is left in the store.
func TestWrongUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := remembering(), 0
		engine := &hook.Engine{Forward: driver.Forward{Engine: store}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
			sent++
			return send()
		}}
		good, closed := newClient(t, engine, nil), newClient(t, engine, nil)
		wantErr(t, closed.Close(t.Context()), nil)
		dead := remembering()
		onDead := newClient(t, dead, nil)
		wantErr(t, dead.Close(), nil)
		ctx := bounded(t)
		refused := func(what string, want error, call func() error) {
			t.Helper()
			before := sent
			if err := unpanicked(t, call); !errors.Is(err, want) || sent != before {
				t.Errorf("%s: %v, after %d requests; want %v, after none", what, err, sent-before, want)
			} else if s := err.Error(); !strings.HasPrefix(s, "holdfast: ") || strings.Contains(s, "\n") {
				t.Errorf("%s: %q, want one line of package holdfast", what, s)
			}
		}
		for name, use := range uses {
			refused(name+" of no client", holdfast.ErrInvalid, func() error { return use.call(ctx, nil, "a", nil) })
			refused(name+" of an empty client", holdfast.ErrInvalid, func() error { return use.call(ctx, new(holdfast.Client), "a", nil) })
			if !use.looks {
				refused(name+" of a closed client", holdfast.ErrClosed, func() error { return use.call(ctx, closed, "a", nil) })
			} else if err := unpanicked(t, func() error { return use.call(ctx, closed, "a", nil) }); err != nil {
				t.Errorf("%s of a closed client: %v, want that it may look", name, err)
			}
			if use.hears {
				continue
			}
			if err := unpanicked(t, func() error { return use.call(ctx, onDead, "a", nil) }); !errors.Is(err, holdfast.ErrClosed) {
				t.Errorf("%s on a closed engine: %v, want ErrClosed", name, err)
			}
			if use.idle != nil {
				refused(name+" of no work", holdfast.ErrInvalid, func() error { return use.idle(ctx, good) })
				refused(name+" of neither", holdfast.ErrInvalid, func() error { return use.idle(ctx, nil) })
			}
			for _, bad := range []string{"", "a\nb", "a\xff", strings.Repeat("x", driver.MaxNameLen+1)} {
				if !use.free {
					refused(name+" of a wrong name", holdfast.ErrInvalid, func() error { return use.call(ctx, good, bad, nil) })
				}
			}
			for _, opts := range wrong {
				if use.opts != nil && reflect.TypeOf(opts) == reflect.TypeOf(use.opts) {
					refused(name+" with wrong options", holdfast.ErrInvalid, func() error { return use.call(ctx, good, "a", opts) })
				}
			}
		}
		refused("Every of no schedule", holdfast.ErrInvalid, func() error {
			return holdfast.Every(ctx, good, "a", nil, nil, func(context.Context, holdfast.EveryRun) error { return nil })
		})
		refused("Close of no client", holdfast.ErrInvalid, func() error { return (*holdfast.Client)(nil).Close(ctx) })
		refused("Close of an empty client", holdfast.ErrInvalid, func() error { return new(holdfast.Client).Close(ctx) })
		for lock, err := range good.List(ctx, "") {
			t.Errorf("left in the store: %s, %v", lock, err)
		}
		for entry, err := range good.OnceList(ctx, "") {
			t.Errorf("left in the store: %+v, %v", entry, err)
		}
	})
}

// TestNothingIsNoPanic: what has no error to return says nothing of nothing.
func TestNothingIsNoPanic(t *testing.T) {
	for _, engine := range []driver.Engine{nil, (*memlock.Engine)(nil), driver.Forward{}} {
		err := unpanicked(t, func() error {
			_, err := holdfast.New(engine, nil)
			return err
		})
		wantErr(t, err, holdfast.ErrInvalid)
	}
	for _, c := range []*holdfast.Client{nil, new(holdfast.Client)} {
		wantErr(t, unpanicked(t, func() error {
			if s := c.String(); s != "no holdfast client" || c.GoString() != s || c.Features().Queuer != nil {
				t.Errorf("%q", s)
			}
			return nil
		}), nil)
	}
	wantErr(t, (*holdfast.AcquireOptions)(nil).Check(), nil)
	wantErr(t, (*holdfast.OnceOptions)(nil).Check(), nil)
	wantErr(t, (*holdfast.EveryOptions)(nil).Check(), nil)
}

// TestUsersNeedNoDriver: what a user of locks has to name has a name in package holdfast.
// Package driver is for those who open stores, write engines or wrap them.
func TestUsersNeedNoDriver(t *testing.T) {
	forEngines := map[string]bool{"New": true, "Features": true}
	n := 0
	eachDeclaration(t, func(d ast.Decl) {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() || forEngines[d.Name.Name] {
				return
			}
			n++
			ast.Inspect(d.Type, func(node ast.Node) bool {
				if s, ok := node.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == "driver" {
					t.Errorf("%s has a driver.%s", d.Name.Name, s.Sel.Name)
				}
				return true
			})
			if strings.Contains(d.Doc.Text(), "driver.M") {
				t.Errorf("the doc of %s names a constant of package driver", d.Name.Name)
			}
		case *ast.GenDecl:
			ast.Inspect(d, func(node ast.Node) bool {
				if f, ok := node.(*ast.Field); ok && len(f.Names) > 0 && f.Names[0].IsExported() {
					if strings.Contains(f.Doc.Text()+f.Comment.Text(), "driver.M") {
						t.Errorf("the doc of %s names a constant of package driver", f.Names[0])
					}
					if s, ok := f.Type.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == "driver" {
						t.Errorf("the field %s is a driver.%s", f.Names[0], s.Sel.Name)
					}
				}
				return true
			})
		}
	})
	if n < 60 {
		t.Errorf("%d functions: are they found?", n)
	}
}
