package observe_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-locks/holdfast/observe"
)

// TestKinds checks that each kind has a unique name, in logs and in JSON.
func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range observe.Kinds() {
		if s := k.String(); s == "" || s == "unknown" || seen[s] {
			t.Errorf("kind %d is called %q", k, s)
		}
		seen[k.String()] = true
	}
	if got := observe.RunMissed + 1; int(got) != len(observe.Kinds()) || got.String() != "unknown" || observe.Kind(-1).String() != "unknown" {
		t.Errorf("the last kind is followed by %s, with %d kinds", got, len(observe.Kinds()))
	}
	if text, err := json.Marshal(observe.HandedOver); err != nil || string(text) != `"handed-over"` {
		t.Errorf("JSON: %s, %v", text, err)
	}
}

func TestObservers(t *testing.T) {
	var told []string
	tell := func(who string) observe.Observer {
		return func(e observe.Event) { told = append(told, fmt.Sprint(who, " ", e.Kind)) }
	}
	if observe.Observers() != nil || observe.Observers(nil, nil) != nil {
		t.Error("no Observers are an Observer")
	}
	observe.Observers(tell("a"), nil, tell("b"))(observe.Event{Kind: observe.Lost})
	observe.Observers(nil, tell("c"))(observe.Event{Kind: observe.LeaseLeft})
	if want := []string{"a lost", "b lost", "c left"}; !slices.Equal(told, want) {
		t.Errorf("received: %q, want %q", told, want)
	}
}

// TestObserversPanic checks that the other Observers receive an event if one panics.
func TestObserversPanic(t *testing.T) {
	told := 0
	all := observe.Observers(func(observe.Event) { panic("first") }, func(observe.Event) { told++ }, func(observe.Event) { told++ })
	func() {
		defer func() {
			if r := recover(); r != "first" {
				t.Errorf("recovered: %v", r)
			}
		}()
		all(observe.Event{})
	}()
	if told != 2 {
		t.Errorf("%d of the 2 others received it", told)
	}
}
