package promlock_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/promlock"
)

var update = flag.Bool("update", false, "write testdata")

// day returns a day of events in order, with every kind. At its end one lock has been held for an
// hour, and one acquire has waited for two minutes, in an outage.
func day() []observe.Event {
	return []observe.Event{
		{Kind: observe.Acquired, Name: "orders/1", Key: "1", Waited: 2 * time.Millisecond},
		{Kind: observe.Renewed, Name: "orders/1", Key: "1"},
		{Kind: observe.RenewFailed, Name: "orders/1", Key: "1", Err: holdfast.ErrUnavailable},
		{Kind: observe.Released, Name: "orders/1", Key: "1", Held: 3 * time.Second},
		{Kind: observe.Waiting, Name: "orders/2", Key: "2", Err: holdfast.ErrHeld},
		{Kind: observe.PlaceChanged, Name: "orders/2", Key: "2"},
		{Kind: observe.HandedOver, Name: "orders/2", Key: "2"},
		{Kind: observe.Acquired, Name: "orders/2", Key: "2", AfterWait: true, Waited: 4 * time.Second},
		{Kind: observe.LeaseBroken, Name: "orders/2", Key: "2", Author: "ada"},
		{Kind: observe.Lost, Name: "orders/2", Key: "2", Held: time.Minute, Err: &holdfast.BrokenError{Author: "ada"}},
		{Kind: observe.Acquired, Name: "orders/3", Key: "3"},
		{Kind: observe.Lost, Name: "orders/3", Key: "3", Held: 10 * time.Second, Err: holdfast.ErrLost},
		{Kind: observe.CleanupFailed, Name: "orders/3", Key: "3", Err: holdfast.ErrUnavailable},
		{Kind: observe.Refused, Name: "orders/4", Err: &holdfast.HeldError{}},
		{Kind: observe.Acquired, Name: "reader", Mode: lockinfo.Shared, Key: "5"},
		{Kind: observe.LeaseLeft, Name: "reader", Mode: lockinfo.Shared, Key: "5", Held: time.Second},
		{Kind: observe.Acquired, Name: "nightly", Key: "6"},
		{Kind: observe.Waiting, Name: "nightly", Key: "7", Waited: time.Second},
		{Kind: observe.OutageBegan, Name: "nightly", Key: "7"},
		{Kind: observe.OutageEnded, Name: "nightly", Key: "7"},
		{Kind: observe.OutageBegan, Name: "nightly", Key: "7"},
		{Kind: observe.OnceCompleted, Name: "mail/7"}, {Kind: observe.OnceReplayed, Name: "mail/8"}, {Kind: observe.OnceFailed, Name: "mail/9"},
		{Kind: observe.TokenIssued, Name: "resets"}, {Kind: observe.TokenRedeemed, Name: "resets"}, {Kind: observe.TokenRefused, Name: "resets"},
		{Kind: observe.TokenRevoked, Name: "resets"}, {Kind: observe.TokensPruned, Name: "resets", Count: 5}, {Kind: observe.PruneFailed, Name: "resets"},
		{Kind: observe.ClaimAccepted, Name: "seats"}, {Kind: observe.ClaimRefused, Name: "seats"},
		{Kind: observe.RequestRan, Name: "pay/1"}, {Kind: observe.RequestReplayed, Name: "pay/2"}, {Kind: observe.RequestRefused},
		{Kind: observe.RunDone, Name: "report", Scheduled: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)},
		{Kind: observe.RunFailed, Name: "report"}, {Kind: observe.RunMissed, Name: "report", Count: 3},
	}
}

// tell reports the events of a day. The last hour has no events except a wait.
func tell(m *promlock.Metrics) {
	for _, e := range day() {
		e.Time = time.Now()
		m.Observe(e)
		if e.Key == "6" {
			time.Sleep(time.Hour - 119*time.Second)
		}
	}
	time.Sleep(119 * time.Second)
}

// TestDay checks that a day has every kind of event.
func TestDay(t *testing.T) {
	for _, kind := range observe.Kinds() {
		if !slices.ContainsFunc(day(), func(e observe.Event) bool { return e.Kind == kind }) {
			t.Errorf("a day without %s", kind)
		}
	}
}

// TestText compares all exposed metrics after a day with testdata.
func TestText(t *testing.T) {
	for file, opts := range map[string]*promlock.Options{
		"testdata/plain.txt": nil,
		"testdata/names.txt": {NameLabel: promlock.FoldNames},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := promlock.New(opts)
			tell(m)
			got := expose(t, m)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := testutil.CollectAndCompare(m, strings.NewReader(string(want))); err != nil {
				t.Errorf("%s: %v\n(go test ./promlock -run TestText -update writes it anew)", file, err)
			}
		})
	}
}

// expose returns the text that Prometheus scrapes.
func expose(t testing.TB, m *promlock.Metrics) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	scrape := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if scrape.Code != http.StatusOK {
		t.Fatalf("status %d: %s", scrape.Code, scrape.Body)
	}
	return scrape.Body.String()
}

// TestLint checks that names, units and help texts follow the rules of Prometheus.
func TestLint(t *testing.T) {
	m := promlock.New(&promlock.Options{NameLabel: promlock.FoldNames})
	for _, e := range day() {
		e.Time = time.Now()
		m.Observe(e)
	}
	problems, err := testutil.CollectAndLint(m)
	if err != nil || len(problems) > 0 {
		t.Errorf("%+v, %v", problems, err)
	}
}

// TestManyNames checks that 10,000 different names have 200 labels, and that the next 100,000 names
// take no memory.
func TestManyNames(t *testing.T) {
	m := promlock.New(&promlock.Options{NameLabel: promlock.FoldNames})
	acquire := func(from, to int) (heap uint64) {
		for i := from; i < to; i++ {
			e := observe.Event{Kind: observe.Acquired, Time: time.Now(), Name: letters(i), Key: lockinfo.NewLeaseID()}
			m.Observe(e)
			e.Kind = observe.Released
			m.Observe(e)
		}
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := acquire(0, 10_000)
	labels := labels(t, m)
	if len(labels) != promlock.MaxNames || !labels["other"] {
		t.Errorf("%d labels, want %d and other among them", len(labels), promlock.MaxNames)
	}
	series := testutil.CollectAndCount(m)
	after := acquire(10_000, 110_000)
	if n := testutil.CollectAndCount(m); n != series {
		t.Errorf("%d series after 10,000 names, %d after 110,000", series, n)
	}
	if grown := int64(after) - int64(before); grown > 1<<20 {
		t.Errorf("100,000 more names have left %d kB", grown>>10)
	}
}

// letters returns a different name for each number, without a digit.
func letters(i int) (name string) {
	for ; i > 0 || name == ""; i /= 26 {
		name += string(rune('a' + i%26))
	}
	return "job-" + name
}

// labels returns the values of the label "name".
func labels(t *testing.T, m *promlock.Metrics) map[string]bool {
	all := map[string]bool{}
	for _, match := range regexp.MustCompile(`name="([^"]*)"`).FindAllStringSubmatch(expose(t, m), -1) {
		all[match[1]] = true
	}
	return all
}
