package driver_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// An engine has the methods of driver.Engine and the capabilities of the test.
type engine struct {
	driver.Engine
	capable driver.Capabilities
}

func (e engine) Capabilities() driver.Capabilities { return e.capable }

// An able engine has all methods.
type able struct {
	driver.Forward
	capable driver.Capabilities
}

func (a able) Capabilities() driver.Capabilities { return a.capable }

// flags yields capabilities with one flag each.
func flags(yield func(name string, only driver.Capabilities) bool) {
	var c driver.Capabilities
	of := reflect.TypeOf(c)
	for i := range of.NumField() {
		if of.Field(i).Type.Kind() != reflect.Bool {
			continue
		}
		var only driver.Capabilities
		reflect.ValueOf(&only).Elem().Field(i).SetBool(true)
		if !yield(of.Field(i).Name, only) {
			return
		}
	}
}

// carried returns how many interfaces f has.
func carried(f driver.Features) (n int) {
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Interface && !v.Field(i).IsNil() {
			n++
		}
	}
	return n
}

// TestEachFlagNeedsItsMethods tries each flag on an engine without optional
// methods, and on one that has them all.
func TestEachFlagNeedsItsMethods(t *testing.T) {
	store := memlock.New()
	for name, only := range flags {
		plain := name == "Semaphore" || name == "Replicas" // these have no methods
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
