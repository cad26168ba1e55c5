package hook_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// pass lets every request through.
func pass(_ context.Context, _ hook.Request, send func() error) error { return send() }

func TestConforms(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open: func(testing.TB) driver.Engine {
			return &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: pass}
		},
		Unit:   time.Second,
		Bubble: synctest.Test,
	})
}

// direct are the methods that send no request.
var direct = []string{"Capabilities", "Close", "OnEvent", "OnLoss", "Route", "SelfPruning", "Watch"}

// TestEveryRequestIsHooked checks that every method of the driver that sends a request calls the
// hook, and returns the hook's error.
func TestEveryRequestIsHooked(t *testing.T) {
	want := errors.New("refused by the hook")
	var seen []hook.Request
	e := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, r hook.Request, _ func() error) error {
		seen = append(seen, r)
		return want
	}}
	methods := reflect.TypeFor[*hook.Engine]()
	for i := range methods.NumMethod() {
		m := methods.Method(i)
		if slices.Contains(direct, m.Name) {
			continue
		}
		seen = nil
		err := called(t, e, m)
		if len(seen) != 1 || seen[0].Method != m.Name {
			t.Errorf("%s: the hook saw %v", m.Name, seen)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want that of the hook", m.Name, err)
		}
	}
}

// called calls a method with one zero request, and returns its error.
func called(t *testing.T, e *hook.Engine, m reflect.Method) error {
	t.Helper()
	in := []reflect.Value{reflect.ValueOf(e), reflect.ValueOf(t.Context())}
	for i := 2; i < m.Type.NumIn(); i++ {
		arg := reflect.New(m.Type.In(i)).Elem()
		if arg.Kind() == reflect.Slice {
			arg = reflect.MakeSlice(arg.Type(), 1, 1)
		}
		in = append(in, arg)
	}
	out := m.Func.Call(in)
	var err error
	switch last := out[len(out)-1]; last.Kind() {
	case reflect.Func: // a list
		for v, e := range last.Seq2() {
			_, err = v, e.Interface().(error)
		}
	case reflect.Slice: // the replies to a batch
		if answer := last.Index(0); answer.Kind() == reflect.Struct {
			err = answer.FieldByName("Err").Interface().(error)
		} else {
			err = answer.Interface().(error)
		}
	default:
		err, _ = last.Interface().(error)
	}
	return err
}
