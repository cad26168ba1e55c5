package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// wrong contains invalid options of each type.
var wrong = []any{
	&holdfast.AcquireOptions{TTL: time.Millisecond}, &holdfast.AcquireOptions{MaxWait: -1}, &holdfast.AcquireOptions{MinHold: 1},
	&holdfast.AcquireOptions{MaxHold: -1}, &holdfast.AcquireOptions{StallAfter: 1}, &holdfast.AcquireOptions{LockDelay: 1},
	&holdfast.AcquireOptions{KeepAlive: 7}, &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff, StallAfter: time.Second},
	&holdfast.AcquireOptions{Replicas: -1}, &holdfast.AcquireOptions{MinToken: driver.MaxToken}, &holdfast.AcquireOptions{Mode: 9},
	&holdfast.AcquireOptions{Mode: holdfast.Permits(3, 2)}, &holdfast.AcquireOptions{Mode: holdfast.Permits(1, 0)}, &holdfast.AcquireOptions{Reason: "\x1b[2J"},

	&holdfast.LeadOptions{Acquire: holdfast.AcquireOptions{TTL: 1}}, &holdfast.LeadOptions{Acquire: holdfast.AcquireOptions{Mode: holdfast.Shared}},
	&holdfast.LeadOptions{Acquire: holdfast.AcquireOptions{MaxWait: time.Second}}, &holdfast.LeadOptions{Pause: -1},
	&holdfast.LeadOptions{LongestPause: time.Millisecond},

	&holdfast.OnceOptions{TTL: 1}, &holdfast.OnceOptions{Retention: 1}, &holdfast.OnceOptions{Retention: holdfast.MaxRetention + 1},
	&holdfast.OnceOptions{MaxResult: -1}, &holdfast.OnceOptions{Scheduled: time.Unix(0, 1)}, &holdfast.OnceOptions{MaxResult: holdfast.MaxOnceResult + 1}, &holdfast.OnceOptions{Await: -1},
	&holdfast.OnceOptions{Fingerprint: "a\nb"}, &holdfast.OnceOptions{MaxHold: 1}, &holdfast.OnceOptions{StallAfter: -1},

	&holdfast.EveryOptions{TTL: 1}, &holdfast.EveryOptions{StartWithin: -1}, &holdfast.EveryOptions{MaxAttempts: -1}, &holdfast.EveryOptions{ForgetAfter: 1},
	&holdfast.EveryOptions{MaxHold: 1}, &holdfast.EveryOptions{Reason: "a\nb"},

	&holdfast.AdoptOptions{TTL: 1}, &holdfast.AdoptOptions{KeepAlive: -1}, &holdfast.AdoptOptions{MaxHold: 1},

	&holdfast.BreakOptions{Token: driver.MaxToken + 1}, &holdfast.BreakOptions{Author: "a\nb"},
	&holdfast.BreakOptions{Reason: strings.Repeat("x", driver.MaxReason+1)},
}

// TestUsesAreAll checks that uses contains everything that needs a client.
func TestUsesAreAll(t *testing.T) {
	known := map[string]bool{}
	for _, name := range noUses {
		known[name] = true
	}
	for name := range uses {
		known[name] = true
	}
	for m := range reflect.TypeFor[*holdfast.Client]().NumMethod() {
		name := reflect.TypeFor[*holdfast.Client]().Method(m).Name
		expect(t, known[name], "Client.%s is not in uses", name)
	}
	for m := range reflect.TypeFor[holdfast.Records]().NumMethod() {
		name := "Records." + reflect.TypeFor[holdfast.Records]().Method(m).Name
		expect(t, known[name], "%s is not in uses", name)
	}
	n := 0
	eachDeclaration(t, func(d ast.Decl) {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && takesClient(f) {
			if n++; !known[f.Name.Name] {
				t.Errorf("%s is not in uses", f.Name.Name)
			}
		}
	})
	expect(t, n == 3, "%d functions take a client: want the generic ones only, Call, TryCall and OnceJSON", n)
}

// eachDeclaration calls f with each declaration of package holdfast.
func eachDeclaration(t *testing.T, f func(ast.Decl)) {
	t.Helper()
	files, err := os.ReadDir(".")
	must(t, err)
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.ParseComments)
		must(t, err)
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

// TestWrongUses checks that every use returns the documented error for a nil or closed client, a
// closed store, nil work, and invalid names and options. No request is sent, nothing panics, and
// nothing is left in the store.
func TestWrongUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := remembering(), 0
		engine := &hook.Engine{Forward: driver.Forward{Engine: store}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
			sent++
			return send()
		}}
		good, closed := newClient(t, engine, nil), newClient(t, engine, nil)
		wantErr(t, closed.Close(), nil)
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
			return good.Every(ctx, "a", nil, nil, func(context.Context, holdfast.EveryRun) error { return nil })
		})
		refused("Close of no client", holdfast.ErrInvalid, func() error { return (*holdfast.Client)(nil).Close() })
		refused("Close of an empty client", holdfast.ErrInvalid, func() error { return new(holdfast.Client).Close() })
		refused("Shutdown of no client", holdfast.ErrInvalid, func() error { return (*holdfast.Client)(nil).Shutdown(ctx) })
		refused("Shutdown of an empty client", holdfast.ErrInvalid, func() error { return new(holdfast.Client).Shutdown(ctx) })
		for lock, err := range good.List(ctx, "") {
			t.Errorf("left in the store: %s, %v", lock, err)
		}
		for entry, err := range good.Records().List(ctx, "") {
			t.Errorf("left in the store: %+v, %v", entry, err)
		}
	})
}

// TestNothingIsNoPanic checks that functions without an error result do not panic on nil values,
// and that New refuses empty engines.
func TestNothingIsNoPanic(t *testing.T) {
	for _, engine := range []driver.Engine{nil, (*mem.Engine)(nil), driver.Forward{}} {
		err := unpanicked(t, func() error {
			_, err := holdfast.New(engine, nil)
			return err
		})
		wantErr(t, err, holdfast.ErrInvalid)
	}
	for _, c := range []*holdfast.Client{nil, new(holdfast.Client)} {
		wantErr(t, unpanicked(t, func() error {
			s := c.String()
			expect(t, s == "no holdfast client" && c.GoString() == s, "%q", s)
			return nil
		}), nil)
	}
	wantErr(t, (*holdfast.AcquireOptions)(nil).Check(), nil)
	wantErr(t, (*holdfast.OnceOptions)(nil).Check(), nil)
	wantErr(t, (*holdfast.EveryOptions)(nil).Check(), nil)
}

// TestUsersNeedNoDriver checks that users of locks need no names of package driver. It is for code
// that opens stores, and writes or wraps engines.
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
			expect(t, !strings.Contains(d.Doc.Text(), "driver.M"), "the doc of %s names a constant of package driver", d.Name.Name)
		case *ast.GenDecl:
			ast.Inspect(d, func(node ast.Node) bool {
				if f, ok := node.(*ast.Field); ok && len(f.Names) > 0 && f.Names[0].IsExported() {
					expect(t, !strings.Contains(f.Doc.Text()+f.Comment.Text(), "driver.M"), "the doc of %s names a constant of package driver", f.Names[0])
					if s, ok := f.Type.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == "driver" {
						t.Errorf("the field %s is a driver.%s", f.Names[0], s.Sel.Name)
					}
				}
				return true
			})
		}
	})
	expect(t, n >= 60, "%d functions: are they found?", n)
}

// A use is a function or method that needs a client.
type use struct {
	// opts is a pointer to options of the use's type; nil is the default
	call  func(ctx context.Context, c *holdfast.Client, name string, opts any) error
	idle  func(ctx context.Context, c *holdfast.Client) error // calls it with nil work; nil if it takes no work
	opts  any                                                 // nil options of its type; nil if it takes none
	looks bool                                                // it acquires nothing, and works after Close
	hears bool                                                // it only listens, and need not report a closed engine
	free  bool                                                // its name is a prefix, and may be any text
}

// optionsOf returns opts if they are of type T.
func optionsOf[T any](opts any) *T {
	o, _ := opts.(*T)
	return o
}

// lastError returns the last error of a sequence.
func lastError[T any](all iter.Seq2[T, error]) (err error) {
	for _, err = range all {
	}
	return err
}

var (
	acquireOptions *holdfast.AcquireOptions
	onceOptions    *holdfast.OnceOptions
)

var hourly = holdfast.Periodic(time.Unix(0, 0), time.Hour)

func doNothing(context.Context, *holdfast.Lease) error { return nil }

func doZero(context.Context, *holdfast.Lease) (int, error) { return 0, nil }

func doNone(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil }

// uses are all uses of a client in package holdfast; see TestUsesAreAll.
var uses = map[string]use{
	"Acquire": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.Acquire(ctx, name, optionsOf[holdfast.AcquireOptions](opts))
		return err
	}},
	"TryAcquire": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.TryAcquire(ctx, name, optionsOf[holdfast.AcquireOptions](opts))
		return err
	}},
	"AcquireAll": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.AcquireAll(ctx, []string{"other", name}, optionsOf[holdfast.AcquireOptions](opts))
		return err
	}},
	"TryAcquireAll": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.TryAcquireAll(ctx, []string{name, "other"}, optionsOf[holdfast.AcquireOptions](opts))
		return err
	}},
	"Do": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		return c.Do(ctx, name, optionsOf[holdfast.AcquireOptions](opts), doNothing)
	}, idle: func(ctx context.Context, c *holdfast.Client) error { return c.Do(ctx, "a", nil, nil) }},
	"TryDo": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		return c.TryDo(ctx, name, optionsOf[holdfast.AcquireOptions](opts), doNothing)
	}, idle: func(ctx context.Context, c *holdfast.Client) error { return c.TryDo(ctx, "a", nil, nil) }},
	"Call": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := holdfast.Call(ctx, c, name, optionsOf[holdfast.AcquireOptions](opts), doZero)
		return err
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		_, err := holdfast.Call[int](ctx, c, "a", nil, nil)
		return err
	}},
	"TryCall": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := holdfast.TryCall(ctx, c, name, optionsOf[holdfast.AcquireOptions](opts), doZero)
		return err
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		_, err := holdfast.TryCall[int](ctx, c, "a", nil, nil)
		return err
	}},
	"Lead": {opts: (*holdfast.LeadOptions)(nil), call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		return c.Lead(ctx, name, optionsOf[holdfast.LeadOptions](opts), doNothing)
	}, idle: func(ctx context.Context, c *holdfast.Client) error { return c.Lead(ctx, "a", nil, nil) }},
	"Adopt": {opts: (*holdfast.AdoptOptions)(nil), call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		handle := holdfast.NewHandle(name, lockinfo.NewLeaseID(), 7, holdfast.Exclusive)
		_, err := c.Adopt(ctx, handle, optionsOf[holdfast.AdoptOptions](opts))
		return err
	}},
	"Once": {opts: onceOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.Once(ctx, name, optionsOf[holdfast.OnceOptions](opts), doNone)
		return err
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		_, err := c.Once(ctx, "a", nil, nil)
		return err
	}},
	"Every": {opts: (*holdfast.EveryOptions)(nil), call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		return c.Every(ctx, name, hourly, optionsOf[holdfast.EveryOptions](opts), func(context.Context, holdfast.EveryRun) error { return nil })
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		return c.Every(ctx, "a", hourly, nil, nil)
	}},
	"Records.Schedule": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.Records().Schedule(ctx, name)
		return err
	}},
	"OnceJSON": {opts: onceOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, _, err := holdfast.OnceJSON(ctx, c, name, optionsOf[holdfast.OnceOptions](opts), doZero)
		return err
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		_, _, err := holdfast.OnceJSON[int](ctx, c, "a", nil, nil)
		return err
	}},
	"OnceBegin": {opts: onceOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.OnceBegin(ctx, name, optionsOf[holdfast.OnceOptions](opts))
		return err
	}},
	"OnceAdopt": {opts: onceOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.OnceAdopt(ctx, holdfast.NewHandle(name, lockinfo.NewLeaseID(), 7, holdfast.Exclusive), optionsOf[holdfast.OnceOptions](opts))
		return err
	}},
	"Records.Result": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.Records().Result(ctx, name)
		return err
	}},
	"Records.Of": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.Records().Of(ctx, holdfast.LockState{Name: name})
		return err
	}},
	"Records.Once": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.Records().Once(ctx, name)
		return err
	}},
	"Records.Forget": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.Records().Forget(ctx, name)
		return err
	}},
	"Records.List": {looks: true, free: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		return lastError(c.Records().List(ctx, name))
	}},
	"Inspect": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.Inspect(ctx, name)
		return err
	}},
	"List": {looks: true, free: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		return lastError(c.List(ctx, name))
	}},
	"Break": {looks: true, opts: (*holdfast.BreakOptions)(nil), call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.Break(ctx, name, optionsOf[holdfast.BreakOptions](opts))
		return err
	}},
	"History": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.History(ctx, name)
		return err
	}},
	"Feed": {hears: true, free: true, call: func(ctx context.Context, c *holdfast.Client, prefix string, _ any) error {
		return lastError(c.Feed(ctx, prefix))
	}},
	"Records.Breaks": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.Records().Breaks(ctx, name)
		return err
	}},
}

// noUses are the methods that need a client, but neither a store nor a name.
var noUses = []string{"Close", "Shutdown", "Features", "Records", "String", "GoString", "MarshalText"}
