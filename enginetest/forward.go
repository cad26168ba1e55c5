package enginetest

import (
	"reflect"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// A wrapper is a typical wrapper of an engine.
type wrapper struct{ driver.Forward }

// Forwarded returns h with its engines wrapped in driver.Forward, without the given
// capabilities.
func (h Harness) Forwarded(without driver.Capabilities) Harness {
	open, join := h.Open, h.Join
	h.Open = func(tb testing.TB) driver.Engine {
		return wrapper{driver.Forward{Engine: open(tb), Without: without}}
	}
	if join != nil {
		h.Join = func(tb testing.TB, e driver.Engine) driver.Engine {
			return wrapper{driver.Forward{Engine: join(tb, e.(wrapper).Engine), Without: without}}
		}
	}
	return h
}

// RunForwarded checks wrappers of the engine of h. In virtual time it runs the suite with a wrapper
// that embeds driver.Forward, and once for each flag of the engine with a wrapper that switches
// this flag off.
//
// In real time it checks only the requirements of an engine without the flag, which takes no time.
// For all flags, call Run with Harness.Forwarded.
func RunForwarded(t *testing.T, h Harness) {
	var with map[string]bool
	var capable driver.Capabilities
	h.bubble(t, func(t *testing.T) { with, capable = Applicable(t, h), newT(t, h).Engine.Capabilities() })
	if h.Bubble != nil {
		t.Run("with all", func(t *testing.T) { Run(t, h.Forwarded(driver.Capabilities{})) })
	}
	for flag, only := range Flags {
		if !has(capable, flag) {
			continue
		}
		t.Run("without "+flag, func(t *testing.T) {
			h := h.Forwarded(only)
			if h.Bubble != nil {
				Run(t, h)
				return
			}
			runSome(t, h, func(r Requirement) bool { return r.Name == "ImplementsCapabilities" || !with[r.Name] })
		})
	}
}

// Flags yields the name of each flag of driver.Capabilities, with capabilities that have only this
// flag.
func Flags(yield func(flag string, only driver.Capabilities) bool) {
	of := reflect.TypeFor[driver.Capabilities]()
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

// has reports whether c has the flag of that name.
func has(c driver.Capabilities, flag string) bool {
	return reflect.ValueOf(c).FieldByName(flag).Bool()
}
