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

// example returns a run with two peers that were measured, a third with a single round, and a
// fourth without samples.
func example() *Run {
	return &Run{
		Date: "2026-01-02", Hours: []string{"2026-01-02T03", "2026-01-02T04", "2026-01-05T04"}, Commit: "abc", Command: "bench", Machine: "a machine", Cores: 2, Rounds: 3, Seconds: 1,
		Versions: map[string]string{"Go": "1.26"},
		Workloads: []Workload{{
			Name: "pairs", Title: "Pairs <of> one", Base: "floor", Metrics: []Metric{
				{Name: "rate", Title: "pairs a second", Better: More},
				{Name: "server", Title: "server", Unit: "µs", Better: Less},
			},
			Peers: []Peer{
				{Name: "floor", Floor: true, Samples: map[string][]float64{"rate": {100, 120, 110}, "server": {10, 10, 10}}},
				{Name: "holdfast", Settings: "as it comes", Samples: map[string][]float64{"rate": {55, 66, 44}, "server": {15, 18, 30}}},
				{Name: "slow", Samples: map[string][]float64{"rate": {1}, "server": {99}}},
				{Name: "other", Reason: "it is gone"},
			},
		}},
	}
}

func TestJudge(t *testing.T) {
	rate := func(atLeast float64, against ...string) Goal {
		return Goal{Workload: "pairs", Metric: "rate", Peer: "holdfast", Against: against, AtLeast: atLeast}
	}
	server := func(atMost float64, against ...string) Goal {
		return Goal{Workload: "pairs", Metric: "server", Peer: "holdfast", Against: against, AtMost: atMost}
	}
	for _, c := range []struct {
		goal           Goal
		figure         float64
		bound, outcome string
	}{
		{rate(0.5, "floor"), 0.5, "≥ 0.5 × floor", "met"},
		{rate(0.75, "floor"), 0.5, "≥ 0.75 × floor", "**short by 1.5 ×**"},
		{server(1.8, "floor"), 1.8, "≤ 1.8 × floor", "met"},
		{server(1.5, "floor"), 1.8, "≤ 1.5 × floor", "**short by 1.2 ×**"},
		{server(18), 18, "≤ 18", "met"},
		{server(17.8218), 18, "≤ 17.8", "**short by 1 %**"},
		{server(9), 18, "≤ 9", "**short by 2 ×**"},
		{rate(1, "slow", "other", "floor"), 0.5, "≥ 1 × floor", "**short by 2 ×**"},
		{server(1, "slow", "other", "floor"), 1.8, "≤ 1 × floor", "**short by 1.8 ×**"},
		{server(17, "other"), 0, "≤ 17 × other", "not measured"},
		{server(17, "nobody"), 0, "≤ 17 × nobody", "not measured"},
		{Goal{Workload: "pairs", Metric: "nothing", Peer: "holdfast", AtMost: 17}, 0, "≤ 17", "not measured"},
		{Goal{Workload: "pairs", Metric: "rate", Peer: "nobody", AtMost: 17}, 0, "≤ 17", "not measured"},
	} {
		v := example().Judge([]Goal{c.goal})[0]
		if v.Figure != c.figure || v.Bound() != c.bound || v.Outcome() != c.outcome {
			t.Errorf("got %v, %s, %s; want %v, %s, %s", v.Figure, v.Bound(), v.Outcome(), c.figure, c.bound, c.outcome)
		}
	}
	if got := example().Judge([]Goal{{Workload: "none", Metric: "rate", Peer: "holdfast", AtMost: 1}}); len(got) > 0 {
		t.Errorf("a workload that is not in the run: got %+v", got)
	}
}

// TestFastHour checks that a goal counts as met only after three hours with measurements.
func TestFastHour(t *testing.T) {
	r := example()
	r.Hours = r.Hours[:1]
	v := r.Judge([]Goal{{Workload: "pairs", Metric: "server", Peer: "holdfast", AtMost: 18}})[0]
	if got, want := v.Outcome(), "met so far, in 1 of 3 hours"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAdd checks that runs of one commit on one machine are merged, and that others are refused.
func TestAdd(t *testing.T) {
	r, other := example(), example()
	other.Hours = []string{"2026-01-05T04", "2026-01-06T04"}
	other.Workloads = append(other.Workloads, Workload{Name: "new"})
	other.Workloads[0].Peers = append(other.Workloads[0].Peers, Peer{Name: "late", Samples: map[string][]float64{"rate": {7}}})
	if err := r.Add(other); err != nil {
		t.Fatal(err)
	}
	w := r.Workload("pairs")
	if got := w.Peer("holdfast").Samples["rate"]; len(got) != 6 || len(r.Hours) != 4 || r.Workload("new") == nil || w.Peer("late") == nil {
		t.Errorf("got %v of the hours %v, new %v, late %v", got, r.Hours, r.Workload("new"), w.Peer("late"))
	}
	other.Commit = "another"
	if err := r.Add(other); err == nil {
		t.Error("runs of two commits became one")
	}
}

// TestCompare checks that ratios are of the later run to the earlier.
func TestCompare(t *testing.T) {
	before, after := example(), example()
	before.Workloads[0].Peer("holdfast").Samples["rate"] = []float64{50}
	var b strings.Builder
	if err := Compare(&b, before, after, "holdfast"); err != nil || !strings.Contains(b.String(), "| pairs | pairs a second | 50 | 55 | 1.100 |\n") {
		t.Errorf("got %v\n%s", err, &b)
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
	r := example()
	r.Verdicts = r.Judge([]Goal{
		{Title: "speed", Workload: "pairs", Metric: "rate", Peer: "holdfast", Against: []string{"floor"}, AtLeast: 0.75},
		{Title: "cost", Workload: "pairs", Metric: "server", Peer: "holdfast", AtMost: 20},
		{Title: "others", Workload: "pairs", Metric: "server", Peer: "other", AtMost: 20},
	})
	if err := r.WriteMarkdown(&b, true, "It is slow.\n\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Benchmark of 2026-01-02\n", "Commit abc, 2 cores, a machine.", "3 interleaved rounds of 1 s", "    bench\n", "- Go 1.26\n",
		"\n1 of 3 are met. ",
		"| [speed](#pairs) | ≥ 0.75 × floor | 0.5 [0.4, 0.55] | **short by 1.5 ×** |\n",
		"| [cost](#pairs) | ≤ 20 | 18 [15, 30] | met |\n",
		"| [others](#pairs) | ≤ 20 | – | not measured |\n",
		"\n## Where it falls short, and why\n\nIt is slow.\n\n## pairs\n",
		"\n## pairs\n\nPairs <of> one.\n", "(pairs.svg)",
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
	r := example()
	r.Workloads[0].Peers[0].Samples["rate"][0] = 1.0 / 3e6
	r.Workloads[0].Peers[1].Samples["rate"][0] = 123456.7
	b.Reset()
	if err := r.WriteJSON(&b); err != nil || !strings.Contains(b.String(), "[3.3333e-7,") || !strings.Contains(b.String(), "[123460,") {
		t.Errorf("got %v\n%s", err, b.String())
	}
	if _, err := ReadJSON(strings.NewReader(`{"unknown": 1}`)); err == nil {
		t.Error("a file of another kind is read without an error")
	}
}

// TestFarOff checks that a bar that is far too long is cut, so that the others stay readable, and
// that no bar is cut where more is better.
func TestFarOff(t *testing.T) {
	peers := func(m string) (all []Peer) {
		for _, v := range []float64{10, 12, 1000} {
			all = append(all, Peer{Samples: map[string][]float64{m: {v}}})
		}
		return all
	}
	for better, want := range map[Better]float64{Less: 60, More: 1000} {
		if got := newScale(Metric{Name: "m", Better: better}, peers("m")); got.longest != want || got.at(2000) != width-valueWidth {
			t.Errorf("%s is better: got %v up to %v, want %v", better, got.longest, got.at(2000), want)
		}
	}
}

// TestPicture checks that a picture is well-formed XML, has a bar, a name and a figure for each
// measured peer, and that the ranges fit into the picture.
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
		"<rect ": 3, `class="own bar"`: 1, `class="floor bar"`: 1, ">holdfast</text>": 1, ">55</text>": 1, ">110</text>": 1,
		"Pairs &lt;of&gt; one": 2, "prefers-color-scheme: dark": 1, "other": 0, "NaN": 0,
		`x2="650.0"`: 1, // the greatest of all samples
	} {
		if got := strings.Count(svg, text); got != want {
			t.Errorf("%d times %s, want %d, in\n%s", got, text, want, svg)
		}
	}
}
