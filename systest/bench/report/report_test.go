package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.03121: "0.0312", 1: "1", 4.204: "4.2", 35.71: "35.7", 99.96: "100", 205: "205", 999.6: "1,000",
		11431.4: "11,431", 1234567: "1,234,567", -2.5: "-2.5", -1500: "-1,500", math.Inf(1): "–",
	} {
		if got := Figure(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}

// example is a run of two peers, and a third that could not do it.
func example() *Run {
	return &Run{
		Date: "2026-01-02", Commit: "abc", Command: "bench", Machine: "a machine", Cores: 2, Rounds: 3, Seconds: 1,
		Versions: map[string]string{"Go": "1.26"},
		Workloads: []Workload{{
			Name: "pairs", Title: "Pairs <of> one", Base: "floor", Metrics: []Metric{
				{Name: "rate", Title: "pairs a second", Better: More},
				{Name: "server", Title: "server", Unit: "µs", Better: Less},
			},
			Peers: []Peer{
				{Name: "floor", Floor: true, Samples: map[string][]float64{"rate": {100, 120, 110}, "server": {10, 10, 10}}},
				{Name: "holdfast", Settings: "as it comes", Samples: map[string][]float64{"rate": {55, 66, 44}, "server": {15, 18, 30}}},
				{Name: "other", Reason: "it is gone"},
			},
		}},
	}
}

func TestJudge(t *testing.T) {
	goal := func(metric, against string, atLeast, atMost float64) Goal {
		return Goal{Workload: "pairs", Metric: metric, Peer: "holdfast", Against: against, AtLeast: atLeast, AtMost: atMost}
	}
	for _, c := range []struct {
		goal          Goal
		figure        float64
		measured, met bool
		bound         string
	}{
		{goal("rate", "floor", 0.5, 0), 0.5, true, true, "≥ 0.5 × floor"},
		{goal("rate", "floor", 0.51, 0), 0.5, true, false, "≥ 0.51 × floor"},
		{goal("server", "floor", 0, 1.8), 1.8, true, true, "≤ 1.8 × floor"},
		{goal("server", "floor", 0, 1.7), 1.8, true, false, "≤ 1.7 × floor"},
		{goal("server", "", 0, 18), 18, true, true, "≤ 18"},
		{goal("server", "", 0, 17), 18, true, false, "≤ 17"},
		{goal("server", "other", 0, 17), 0, false, false, "≤ 17 × other"},
		{goal("server", "nobody", 0, 17), 0, false, false, "≤ 17 × nobody"},
		{Goal{Workload: "pairs", Metric: "rate", Peer: "holdfast", Against: "holdfast", In: "pairs", AtMost: 1}, 1, true, true, "≤ 1 × holdfast in pairs"},
		{Goal{Workload: "pairs", Metric: "rate", Peer: "holdfast", Against: "holdfast", In: "none", AtMost: 1}, 0, false, false, "≤ 1 × holdfast in none"},
		{goal("nothing", "", 0, 17), 0, false, false, "≤ 17"},
		{Goal{Workload: "none", Metric: "rate", Peer: "holdfast", AtMost: 1}, 0, false, false, "≤ 1"},
	} {
		v := example().Judge([]Goal{c.goal})[0]
		if v.Measured != c.measured || v.Met != c.met || c.measured && v.Figure != c.figure || c.goal.Bound() != c.bound {
			t.Errorf("%s: got %+v; %s", c.bound, v, c.goal.Bound())
		}
	}
}

func TestSummarize(t *testing.T) {
	r := example()
	r.Summarize()
	want := map[string]Summary{"rate": {55, 44, 66, 0.5}, "server": {18, 15, 30, 1.8}}
	if got := r.Workloads[0].Peer("holdfast").Summary; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r.Workloads[0].Base = "other" // which has no samples
	r.Summarize()
	if got := r.Workloads[0].Peer("holdfast").Summary["rate"]; got != (Summary{55, 44, 66, 0}) {
		t.Errorf("beside a peer without samples: got %v", got)
	}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	missed := Goal{Workload: "pairs", Metric: "rate", Peer: "holdfast", Against: "floor", AtLeast: 0.75}
	if err := example().WriteMarkdown(&b, []Goal{missed}, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Benchmark of 2026-01-02\n", "Commit abc, 2 cores, a machine.", "3 interleaved rounds of 1 s", "    bench\n", "- Go 1.26\n",
		"| pairs | rate | ≥ 0.75 × floor | 0.5 | **no** |",
		"## Pairs <of> one\n", "(pairs.svg)",
		"| peer | pairs a second | server, µs | × floor |\n|---|---:|---:|---:|\n",
		"| floor (floor) | 110 [100, 120] | 10 [10, 10] | 1 |\n",
		"| holdfast: as it comes | 55 [44, 66] | 18 [15, 30] | 0.5 |\n",
		"| other | – | – | it is gone |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
}

func TestJSONThereAndBack(t *testing.T) {
	var b bytes.Buffer
	if err := example().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON(&b)
	if err != nil || !reflect.DeepEqual(got, example()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := ReadJSON(strings.NewReader(`{"unknown": 1}`)); err == nil {
		t.Error("a file of another kind is read without an error")
	}
}

// TestPicture: well-formed, a bar for each peer that was measured, its name and
// its figure in text, and the range within the picture.
func TestPicture(t *testing.T) {
	var b strings.Builder
	if err := example().Workloads[0].WriteSVG(&b, "holdfast"); err != nil {
		t.Fatal(err)
	}
	svg := b.String()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for text, want := range map[string]int{
		"<rect ": 2, `class="own bar"`: 1, `class="floor bar"`: 1, ">holdfast</text>": 1, ">55</text>": 1, ">110</text>": 1,
		"Pairs &lt;of&gt; one": 2, "prefers-color-scheme: dark": 1, "other": 0, "NaN": 0,
		`x2="650.0"`: 1, // the greatest of all samples
	} {
		if got := strings.Count(svg, text); got != want {
			t.Errorf("%d times %s, want %d, in\n%s", got, text, want, svg)
		}
	}
}
