package form_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
)

// fill sets every field that can be set, each to a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(strings.Repeat("x", 1+*n%40))
	case reflect.Int64:
		v.SetInt(int64(*n) * int64(time.Millisecond)) // most are durations
	case reflect.Int:
		if v.Type() == reflect.TypeFor[int]() {
			v.SetInt(int64(*n))
		} else {
			v.SetInt(1) // one of several names
		}
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Interface: // an error
		v.Set(reflect.ValueOf(driver.ErrKindMismatch))
	}
}

// wire checks that all of a value comes through: of makes the form, and back reads it.
func wire[D, F any](t *testing.T, of func(D) F, back func(F) D, change ...func(*D)) {
	t.Helper()
	var want D
	n := 0
	fill(reflect.ValueOf(&want).Elem(), &n)
	for _, f := range change {
		f(&want)
	}
	text, err := json.Marshal(of(want))
	if err != nil {
		t.Fatal(err)
	}
	var f F
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if got := back(f); !reflect.DeepEqual(got, want) {
		t.Errorf("%T: sent\n%#v\nreceived\n%#v\nby %s", want, want, got, text)
	}
}

// TestEveryField: a field that the driver gets some day may not stay behind.
func TestEveryField(t *testing.T) {
	wire(t, form.RequestOf, form.Request.Driver)
	wire(t, form.ReplyOf, form.Reply.Driver, func(r *driver.AcquireReply) { r.Outcome = driver.Held })
	wire(t, form.AllReplyOf, form.AllReply.Driver, func(r *driver.AllReply) { r.Outcome = driver.Held })
	wire(t, form.EndOf, form.End.Driver)
	wire(t, func(l driver.Lock) form.Lock { return form.LockOf(l, form.Whole) }, form.Lock.Driver)
	wire(t, func(all []driver.Broken) form.Records { return form.RecordsOf(all, form.Whole) }, form.Records.Driver)
	wire(t, form.RecordInfoOf, form.RecordInfo.Driver)
	wire(t, form.VaultReplyOf, form.VaultReply.Driver)
	wire(t, form.EventOf, form.Event.Driver)
	wire(t, func(c driver.Capabilities) form.Capabilities { return form.CapabilitiesOf(c, true) }, form.Capabilities.Driver)
	wire(t, form.DiagnosisOf, form.Diagnosis.Driver, func(d *driver.Diagnosis) {
		for i := range d.Findings {
			d.Findings[i].Err = nil // TestErrors has them
		}
	})
	wire(t, form.LossOf, (*form.Loss).Driver, func(l *driver.Loss) { l.Err = driver.ErrLost })
}

// TestErrors: each class of error comes back as what it was, and says the same.
func TestErrors(t *testing.T) {
	for _, class := range []error{
		driver.ErrLost, driver.ErrUnavailable, driver.ErrInvalid, driver.ErrUnsupported, driver.ErrPermission, driver.ErrKindMismatch,
	} {
		sent := errors.Join(class, errors.New("what has happened"))
		if got := form.ErrorOf(sent).Err(); driver.Class(got) != class || got.Error() != sent.Error() {
			t.Errorf("%v has become %v", sent, got)
		}
	}
	// That the server's engine was closed does not close ours.
	if got := form.ErrorOf(driver.ErrClosed).Err(); driver.Class(got) != driver.ErrUnavailable {
		t.Errorf("closed has become %v", got)
	}
	if got := form.ErrorOf(errors.New("a link is broken")).Err(); got == nil || driver.Definite(got) {
		t.Errorf("an unknown outcome has become %v", got)
	}
	var broken *driver.BrokenError
	if got := form.ErrorOf(&driver.BrokenError{Author: "ada", Reason: "stuck"}).Err(); !errors.As(got, &broken) || broken.Author != "ada" || broken.Reason != "stuck" {
		t.Errorf("a break has become %v", got)
	}
	if form.ErrorOf(nil).Err() != nil {
		t.Error("nothing has become an error")
	}
}

// TestSpans: what is left of something does not become nothing, and never stays never.
func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		0: 0, 1: time.Microsecond, time.Microsecond: time.Microsecond, 1001: 2 * time.Microsecond, driver.Never: driver.Never, -time.Hour: driver.Never,
		time.Hour: time.Hour,
	} {
		if got := form.SpanOf(d).Duration(); got != want {
			t.Errorf("%d has become %d, want %d", d, got, want)
		}
	}
}
