package form_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// fill sets every field that can be set, each to a different value.
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
		v.SetInt(int64(*n) + 1e9) // most are durations
	case reflect.Int:
		if v.Type() == reflect.TypeFor[int]() {
			v.SetInt(int64(*n))
		} else {
			v.SetInt(1) // one of several constants
		}
	case reflect.Uint64:
		if v.Type() == reflect.TypeFor[lockinfo.Mode]() {
			v.Set(reflect.ValueOf(lockinfo.Permits(*n, 1000)))
		} else {
			v.SetUint(uint64(*n))
		}
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Interface: // an error
		v.Set(reflect.ValueOf(driver.ErrKindMismatch))
	}
}

// goes checks that a value survives the way through JSON: of makes the form, and back reads it.
func goes[D, F any](t *testing.T, of func(D) F, back func(F) D, change ...func(*D)) {
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
	for _, name := range fieldName.FindAllString(string(text), -1) {
		if name != strings.ToLower(name) {
			t.Errorf("%T: a field without a tag: %s", want, name)
		}
	}
}

var fieldName = regexp.MustCompile(`"[^"]*":`)

func same[T any](v T) T { return v }

// goesAsItIs is goes for a type that needs no separate form.
func goesAsItIs[D any](t *testing.T, change ...func(*D)) {
	t.Helper()
	goes(t, same[D], same[D], change...)
}

// TestEveryField checks that every field of the types in package driver has a tag and survives the
// way through JSON.
func TestEveryField(t *testing.T) {
	goesAsItIs[driver.AcquireRequest](t)
	goesAsItIs[driver.AcquireReply](t)
	goesAsItIs[driver.AllReply](t)
	goesAsItIs[driver.ExtendRequest](t)
	goesAsItIs[driver.RefreshRequest](t)
	goesAsItIs[driver.ReleaseRequest](t)
	goesAsItIs[driver.DowngradeRequest](t)
	goesAsItIs[driver.BreakRequest](t)
	goesAsItIs[driver.CompleteRequest](t)
	goesAsItIs[driver.DepositRequest](t)
	goesAsItIs[driver.RedeemRequest](t)
	goesAsItIs[driver.VaultReply](t)
	goesAsItIs[driver.Capabilities](t)
	goesAsItIs(t, func(r *driver.DiagnoseRequest) { r.URL = "" }) // the URL is not sent
	goesAsItIs[form.Record](t)
	goesAsItIs[form.RecordInfo](t)
	goesAsItIs[form.Reply](t)
	goesAsItIs[form.Capabilities](t)
	goes(t, func(l lockinfo.LockState) form.Lock { return form.LockOf(l, form.Whole) }, form.Lock.State, func(l *lockinfo.LockState) {
		l.Mode = l.Holders[0].Mode.Plus(l.Holders[1].Mode)
	})
	goes(t, func(all []lockinfo.Broken) form.Records { return form.RecordsOf(all, form.Whole) }, form.Records.Breaks)
	goesAsItIs[form.Past](t)
	goes(t, form.DiagnosisOf, form.Diagnosis.Driver, func(d *driver.Diagnosis) {
		for i := range d.Findings {
			d.Findings[i].Err = nil // TestErrors checks the errors
		}
	})
	goes(t, form.RefreshReplyOf, form.RefreshReply.Driver, func(r *driver.RefreshReply) { r.Err = nil })
	goes(t, form.LossOf, (*form.Loss).Driver, func(l *driver.Loss) { l.Err = driver.ErrLost })
}

// TestEmptyRecord checks that a record without bytes is still a record.
func TestEmptyRecord(t *testing.T) {
	text, err := json.Marshal(driver.AcquireReply{Outcome: driver.Recorded, Record: []byte{}})
	if err != nil {
		t.Fatal(err)
	}
	var r driver.AcquireReply
	if err := json.Unmarshal(text, &r); err != nil || r.Record == nil {
		t.Errorf("%s: %#v, %v", text, r, err)
	}
}

// TestErrors checks that each class of error keeps its class and its text.
func TestErrors(t *testing.T) {
	for _, class := range []error{
		driver.ErrLost, driver.ErrUnavailable, driver.ErrInvalid, driver.ErrUnsupported, driver.ErrPermission, driver.ErrKindMismatch,
	} {
		sent := errors.Join(class, errors.New("what has happened"))
		if got := form.ErrorOf(sent).Err(); driver.Class(got) != class || got.Error() != sent.Error() {
			t.Errorf("%v has become %v", sent, got)
		}
	}
	// A closed engine of the server does not close the client's engine.
	if got := form.ErrorOf(driver.ErrClosed).Err(); driver.Class(got) != driver.ErrUnavailable {
		t.Errorf("closed has become %v", got)
	}
	if got := form.ErrorOf(errors.New("a link is broken")).Err(); got == nil || driver.Definite(got) {
		t.Errorf("an unknown outcome has become %v", got)
	}
	var broken *lockinfo.BrokenError
	if got := form.ErrorOf(&lockinfo.BrokenError{Author: "ada", Reason: "stuck"}).Err(); !errors.As(got, &broken) || broken.Author != "ada" || broken.Reason != "stuck" {
		t.Errorf("a break has become %v", got)
	}
	if form.ErrorOf(nil).Err() != nil {
		t.Error("nothing has become an error")
	}
}

// TestNever checks that the expiry Never survives the way through JSON.
func TestNever(t *testing.T) {
	text, err := json.Marshal(driver.Blocker{ExpiresIn: lockinfo.Never})
	var b driver.Blocker
	if err := errors.Join(err, json.Unmarshal(text, &b)); err != nil || b.ExpiresIn != lockinfo.Never {
		t.Errorf("%s: %v, %v", text, b, err)
	}
}

// TestChecked checks that the server refuses requests that no client may send.
func TestChecked(t *testing.T) {
	good := driver.AcquireRequest{Name: "job", LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute}
	if name, err := form.Check(&good, driver.MaxBatch); name != "job" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	for what, change := range map[string]func(r *driver.AcquireRequest){
		"name": func(r *driver.AcquireRequest) { r.Name = "" }, "lease ID": func(r *driver.AcquireRequest) { r.LeaseID = "x" },
		"TTL": func(r *driver.AcquireRequest) { r.TTL++ }, "mode": func(r *driver.AcquireRequest) { r.Mode = 3 },
		"token": func(r *driver.AcquireRequest) { r.MinToken = driver.MaxToken + 1 }, "replicas": func(r *driver.AcquireRequest) { r.Replicas = -1 },
		"place": func(r *driver.AcquireRequest) { r.WaiterTTL = time.Second }, "no place": func(r *driver.AcquireRequest) { r.Queue = true },
		"process": func(r *driver.AcquireRequest) { r.Holder.PID = -1 }, "holder": func(r *driver.AcquireRequest) { r.Holder.Label = strings.Repeat("x", 9<<10) },
	} {
		bad := good
		change(&bad)
		if _, err := form.Check(&bad, driver.MaxBatch); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	batch := form.Batch[driver.AcquireRequest]{Requests: []driver.AcquireRequest{good, good}}
	if _, err := form.Check(&batch, driver.MaxBatch); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a name twice: %v", err)
	}
}
