package wire_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestHTTPBytes checks that requests and replies of servers do not change, byte for byte, and that
// the types of this package read them completely.
func TestHTTPBytes(t *testing.T) {
	var lines bytes.Buffer
	e := json.NewEncoder(&lines)
	for _, v := range httpForms() {
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		read := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal(text, read.Interface()); err != nil || !reflect.DeepEqual(read.Elem().Interface(), v) {
			t.Errorf("%v\n%s is read as\n%+v", err, text, read.Elem())
		}
	}
	want, err := os.ReadFile("testdata/http.json")
	if err != nil || !bytes.Equal(lines.Bytes(), want) {
		t.Errorf("testdata/http.json (%v): got\n%s", err, lines.Bytes())
	}
}

// TestSelf checks that a text is the label, and that a client cannot set what the server finds out
// itself.
func TestSelf(t *testing.T) {
	for text, want := range map[string]wire.Self{
		`"worker-7"`: {Label: "worker-7"}, `{"host":"web-3","pid":812}`: {Host: "web-3", PID: 812}, `{}`: {}, `"a\"b"`: {Label: `a"b`},
	} {
		got := wire.Self{Host: "another", Label: "another"}
		if strings.HasPrefix(text, "{") {
			got = wire.Self{}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{`{"user":"root"}`, `7`, `[]`, `{"pid":"x"}`} {
		var got wire.Self
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
}

func httpForms() []any {
	const id = "0123456789abcdef0123456789abcdef"
	token, none := wire.TokenOf(17), 0
	trip, diagnosis := 0.25, wire.DiagnosisOf(driver.Diagnosis{}, "redis://host:1/2", time.Second)
	blockers := []wire.Blocker{wire.BlockerOf(driver.Blocker{Holder: lockinfo.Holder{Host: "web-3", User: "deploy"}, Since: time.Minute, ExpiresIn: 29 * time.Second})}
	return []any{
		wire.LeaseRequest{Name: "n"},
		wire.LeaseRequest{
			Name: "n", Mode: "semaphore", Limit: 3, Permits: 2, TTLMS: 30_000, WaitMS: 5_000, MinHoldMS: 1_000, LockDelayMS: 2_000, MinToken: 16,
			Holder: &wire.Self{Host: "web-3", PID: 812, Program: "job", Label: "nightly"}, Reason: "film", Labels: map[string]string{"b": "2", "a": "1"},
		},
		wire.Lease{LeaseID: id, Name: "n", Mode: "exclusive", Token: token, TTLMS: 30_000, ExpiresInMS: 29_998},
		wire.LeaseRequest{Names: []string{"n", "m"}, LockDelayMS: 1_000},
		wire.Leases{Leases: []wire.Lease{{LeaseID: id, Name: "n", Mode: "exclusive", Token: token, TTLMS: 30_000, ExpiresInMS: 29_998}}},
		wire.Queued{Place: 1, QueueLength: 2, Holders: blockers, PlaceExpiresInMS: 5_000},
		wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: "n", LeaseID: id, TTLMS: 30_000}},
		wire.LeaseRefs{Leases: []wire.LeaseRef{{Name: "n", LeaseID: id}}},
		wire.Renewed{Name: "n", TTLMS: 30_000, ExpiresInMS: 29_998},
		wire.Downgraded{LeaseID: id, Name: "n", Mode: "shared", Token: token, ExpiresInMS: 29_998},
		wire.LeaseResults{Leases: []wire.LeaseResult{
			{Name: "n", LeaseID: id, Status: 200, TTLMS: 30_000, ExpiresInMS: wire.Left(0)}, {Name: "n", LeaseID: id, Status: 204},
			{Name: "n", LeaseID: id, Status: 410, Code: "broken", Detail: "d", Author: "ada", Reason: "r"},
		}},
		wire.Locks{Locks: []wire.Lock{}, NextCursor: "bg"},
		wire.BreakRequest{FencingToken: 17, Older: true, Closed: true, Reason: "r"},
		wire.Broke{Broken: wire.BrokenOf([]lockinfo.Broken{{Author: "ada", Reason: "r", Ago: time.Second, Token: 17}})},
		wire.HoldRequest{ForMS: 30_000, Reason: "r"}, wire.HoldRequest{ForMS: 30_000, Reason: "r", FencingToken: 17}, wire.HoldRequest{ForMS: 30_000, Reason: "r", Mode: "semaphore", Limit: 3, Permits: 2},
		wire.Hold{Name: "n", Mode: "exclusive", Token: token, ForMS: 30_000, ExpiresInMS: 29_998},
		wire.HoldRelease{FencingToken: 17}, wire.HoldRelease{FencingToken: 17, Reason: "r"},
		wire.Session{Caller: "ann", Rights: []string{"read"}, Prefixes: []string{"shop/"}, SignedIn: true, SignIn: true, Notice: "a demo", History: true, Actions: []string{}},
		wire.Session{Caller: "anonymous", Rights: []string{"read"}, Actions: []string{"break"}},
		wire.SignIn{Token: "x"},
		wire.LookRequest{Names: []string{"n", "<m>"}},
		wire.Looked{Locks: []wire.LockDetails{wire.LockDetailsOf(lockinfo.LockState{Name: "n"}, nil)}, Failed: []wire.LookFailure{{Name: "m", Status: 409, Code: "kind-mismatch", Detail: "d"}}},
		wire.Stats{EveryMS: 5_000, BoundsMS: []int64{0, 1}, LossesAtLeast: true, LastID: "1-0", Buckets: []wire.Bucket{
			{AgoMS: 7_000, Gap: true, Missed: true, Waits: []int{}}, {AgoMS: 2_000, Acquired: 1, HandedOver: 2, Released: 3, Expired: 4, Lost: 5, Broken: 6, Queued: 7, GaveUp: 8, Completed: 9, Waits: []int{1, 0, 2}},
		}, Losses: wire.HistoryOf("k", []lockinfo.HistoryEvent{{ID: "1-0", Kind: lockinfo.HistoryLost, Name: "k", Token: 17}}).Events,
			Contended: []wire.Contended{{Name: "k", Waits: 3, GaveUp: 1, WaitedMS: 7_000, LongestMS: 4_000}}},
		wire.Store{Store: "redis://host:1/2", Features: wire.FeaturesOf(driver.Capabilities{Queue: true, History: true}), History: true, Answers: true, SinceMS: wire.Left(time.Minute), RoundTripMS: &trip, Diagnosis: &diagnosis, CheckedAgoMS: wire.Left(time.Minute)},
		wire.Store{Store: "memlock", Reason: "r", Undiagnosed: "u"},
		wire.TokenCounts{SinceMS: 7, Collections: []wire.TokenCollection{{Name: "onetime", Issued: 1, Redeemed: 2, Revoked: 3, Expired: 4, Refused: 5, Failed: 6, Pruned: 7}}},
		wire.OnceRequest{TTLMS: 30_000, WaitMS: 5_000, Fingerprint: "f", Reason: "r"},
		wire.OnceDone{Key: "k", Result: json.RawMessage(`{"a":1}`), Token: token},
		wire.OnceDone{Key: "k", ResultBytes: []byte{0xff}, Token: token},
		wire.OnceResult{LeaseID: id, Result: json.RawMessage(`1`), RetentionMS: 1_000},
		wire.OnceFailure{LeaseID: id},
		wire.OnceState{Once: wire.Once{Key: "k", State: "done", Token: &token, OutputLength: &none}, Result: json.RawMessage(`""`)},
		wire.Onces{Once: []wire.Once{}},
		wire.TokenRequest{Payload: "p", TTLMS: 1_000}, wire.TokenRequest{PayloadBytes: []byte{0xff}, TTLMS: 1_000},
		wire.IssuedToken{Secret: "hf1t_x", ID: "5f", TTLMS: 1_000}, wire.TokenSecret{Secret: "hf1t_x"},
		wire.Redeemed{Payload: "p"}, wire.Redeemed{PayloadBytes: []byte{0xff}}, wire.Revoked{ID: "5f"},
		wire.Problem{Type: "about:blank", Title: "Conflict", Status: 409, Detail: "d", Code: "lock-held", Holders: blockers, QueueLength: &none},
		wire.Problem{Type: "about:blank", Title: "Gone", Status: 410, Detail: "d", Code: "broken", Author: "ada", Reason: "r"},
	}
}
