package driver_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An engine has only the methods of driver.Engine, and the given capabilities.
type engine struct {
	driver.Engine
	capable driver.Capabilities
}

func (e engine) Capabilities() driver.Capabilities { return e.capable }

// An able engine has all methods, and the given capabilities.
type able struct {
	driver.Forward
	capable driver.Capabilities
}

func (a able) Capabilities() driver.Capabilities { return a.capable }

// carried returns how many interfaces f contains.
func carried(f driver.Features) (n int) {
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Interface && !v.Field(i).IsNil() {
			n++
		}
	}
	return n
}

// TestEachFlagNeedsItsMethods checks each flag on an engine without optional methods, and on an
// engine with all methods.
func TestEachFlagNeedsItsMethods(t *testing.T) {
	store := mem.New(nil)
	for name, only := range enginetest.Flags {
		plain := name == "Semaphore" || name == "Replicas" || name == "Callers" // these have no methods
		f, err := driver.FeaturesOf(engine{store, only})
		switch {
		case plain:
			if err != nil || f.Capabilities != only {
				t.Errorf("%s: %+v, %v", name, f, err)
			}
		case !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "Capabilities."+name+" is set, but driver_test.engine lacks "):
			t.Errorf("%s without its methods: error %v, want ErrInvalid that names both", name, err)
		case f != driver.Features{}:
			t.Errorf("%s: %+v came with the error", name, f)
		}
		f, err = driver.FeaturesOf(able{driver.Forward{Engine: store}, only})
		want := 1
		if plain {
			want = 0
		}
		if err != nil || f.Capabilities != only || carried(f) != want {
			t.Errorf("%s with all methods: %d interfaces, want %d: %+v, %v", name, carried(f), want, f, err)
		}
	}
}

// TestEveryInterfaceIsAFeature checks that every optional interface of engines is a field of
// Features.
func TestEveryInterfaceIsAFeature(t *testing.T) {
	needed := map[string]bool{"Engine": true, "Member": true, "Capable": true, "Watch": true}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for n := range ast.Preorder(file) {
			of, ok := n.(*ast.TypeSpec)
			if !ok || !of.Name.IsExported() {
				continue
			}
			if _, ok := of.Type.(*ast.InterfaceType); !ok {
				continue
			}
			seen++
			if _, ok := reflect.TypeFor[driver.Features]().FieldByName(of.Name.Name); !ok && !needed[of.Name.Name] {
				t.Errorf("%s: Features has no %s", path, of.Name)
			}
		}
	}
	if seen < 15 {
		t.Errorf("%d interfaces were seen, want 15 at least", seen)
	}
}

// TestForwardSwitchesOff checks that Without switches off each flag, and no other.
func TestForwardSwitchesOff(t *testing.T) {
	all := driver.Capabilities{MaxTTL: time.Minute}
	for flag := range enginetest.Flags {
		reflect.ValueOf(&all).Elem().FieldByName(flag).SetBool(true)
	}
	store := able{driver.Forward{Engine: mem.New(nil)}, all}
	if got := (driver.Forward{Engine: store}).Capabilities(); got != all {
		t.Errorf("capabilities %+v, want %+v", got, all)
	}
	for flag, only := range enginetest.Flags {
		want := all
		reflect.ValueOf(&want).Elem().FieldByName(flag).SetBool(false)
		if got := (driver.Forward{Engine: store, Without: only}).Capabilities(); got != want {
			t.Errorf("without %s: capabilities %+v, want %+v", flag, got, want)
		}
	}
}

// TestForwardLacksWhatItsEngineLacks checks that Forward reports no feature that the wrapped engine
// lacks, although Forward has the methods.
func TestForwardLacksWhatItsEngineLacks(t *testing.T) {
	f := driver.Forward{Engine: engine{mem.New(nil), driver.Capabilities{}}}
	if features, err := driver.FeaturesOf(f); err != nil || carried(features) != 0 {
		t.Errorf("%d interfaces, %v; want none", carried(features), err)
	}
	select {
	case notice := <-f.Watch(lockinfo.NewLeaseID()).C():
		t.Errorf("notice %+v", notice)
	default:
	}
	f.OnLoss(func(driver.Loss) { t.Error("received a loss") })()
	f.OnEvent(func(lockinfo.HistoryEvent) { t.Error("received an event") })()
	if f.Route("a") != f.Route("b") || f.SelfPruning() {
		t.Errorf("routes %d and %d, SelfPruning %t; want one route and false", f.Route("a"), f.Route("b"), f.SelfPruning())
	}
}
