package driver

import (
	"cmp"
	"fmt"
	"reflect"
)

// Features are what one engine can do: its capabilities, and for each flag that is
// set the optional interface that carries it. The interfaces of the other flags are
// nil, whatever methods the engine has.
type Features struct {
	Capabilities

	Queuer      Queuer
	Downgrader  Downgrader
	AllAcquirer AllAcquirer
	Recorder    Recorder
	Vault       Vault
	Lister      Lister
	Router      Router
	Breaker     Breaker
	LossTeller  LossTeller
	Diagnoser   Diagnoser
	Historian   Historian
}

// A Capable has capabilities: an Engine or a Member.
type Capable interface{ Capabilities() Capabilities }

// FeaturesOf returns what engine can do. It returns an error that wraps ErrInvalid if the engine
// is nil, or lacks the methods of a flag that is set. A wrapper that embeds only Engine fails
// like that: it passes the flags on but lacks the methods. It should embed Forward.
func FeaturesOf(engine Capable) (Features, error) {
	if v := reflect.ValueOf(engine); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return Features{}, fmt.Errorf("%w engine: it is nil: did opening it fail?", ErrInvalid)
	}
	if w, ok := engine.(interface{ wrapped() Engine }); ok {
		// A Forward has all methods, so the wrapped engine is checked as well.
		if _, err := FeaturesOf(w.wrapped()); err != nil {
			return Features{}, err
		}
	}
	return resolve(engine, engine.Capabilities())
}

// resolve finds the methods of engine for the flags of capable.
func resolve(engine any, capable Capabilities) (Features, error) {
	f := Features{Capabilities: capable}
	err := cmp.Or(
		carry(&f.Queuer, engine, f.Queue, "Queue", "Watch and Refresh of driver.Queuer"),
		carry(&f.Downgrader, engine, f.Shared, "Shared", "Downgrade of driver.Downgrader"),
		carry(&f.AllAcquirer, engine, f.AcquireAll, "AcquireAll", "AcquireAll of driver.AllAcquirer"),
		carry(&f.Recorder, engine, f.Records, "Records", "Complete, Recall, Forget, DescribeRecord and ListRecords of driver.Recorder"),
		carry(&f.Vault, engine, f.OneTime, "OneTime", "Deposit, Redeem and the others of driver.Vault"),
		carry(&f.Lister, engine, f.List, "List", "List of driver.Lister"),
		carry(&f.Router, engine, f.Routes, "Routes", "Route of driver.Router"),
		carry(&f.Breaker, engine, f.Break, "Break", "Break and Breaks of driver.Breaker"),
		carry(&f.LossTeller, engine, f.Losses, "Losses", "OnLoss of driver.LossTeller"),
		carry(&f.Diagnoser, engine, f.Diagnose, "Diagnose", "Diagnose of driver.Diagnoser"),
		carry(&f.Historian, engine, f.History, "History", "History and OnEvent of driver.Historian"),
	)
	if err != nil {
		return Features{}, err
	}
	return f, nil
}

// carry sets *as to the engine if flag is set.
func carry[I any](as *I, engine any, set bool, flag, methods string) error {
	if !set {
		return nil
	}
	var ok bool
	if *as, ok = engine.(I); !ok {
		return fmt.Errorf("%w engine: Capabilities.%s is set, but %T lacks %s: a wrapper must hand them on, as driver.Forward does",
			ErrInvalid, flag, engine, methods)
	}
	return nil
}

// without returns c without the flags that are set in off.
func (c Capabilities) without(off Capabilities) Capabilities {
	all, unset := reflect.ValueOf(&c).Elem(), reflect.ValueOf(off)
	for field, flag := range unset.Fields() {
		if flag.Kind() == reflect.Bool && flag.Bool() {
			all.FieldByIndex(field.Index).SetBool(false)
		}
	}
	return c
}
