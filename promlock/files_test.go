package promlock_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// promtool runs the tool of Prometheus that checks rules.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path := testsvc.Need(t, "promtool", "prometheus", "prometheus")
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

const rules = "alerts/holdfast.rules.yml"

// TestAlerts checks that the rules are valid, and that each alert has a test in which it fires.
func TestAlerts(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rules)
	promtool(t, "test", "rules", "alerts/holdfast.test.yml")
	text, tests := file(t, rules), file(t, "alerts/holdfast.test.yml")
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(text, -1)
	if len(alerts) < 9 {
		t.Errorf("%d alerts: are they read?", len(alerts))
	}
	for _, alert := range alerts {
		if !strings.Contains(tests, `alertname="`+alert[1]+`",alertstate="firing"`) {
			t.Errorf("no test lets %s fire", alert[1])
		}
	}
	for _, part := range []string{"expr: ", "severity: ", "summary: ", "description: ", "runbook: |"} {
		if got := strings.Count(text, part); got != len(alerts) {
			t.Errorf("%d alerts have %d times %q", len(alerts), got, part)
		}
	}
}

// A dashboard has the parts of a Grafana dashboard that this test reads.
type dashboard struct {
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
	Annotations struct{ List []struct{ Expr string } }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct {
		Expr, LegendFormat, RefID string
		Datasource                struct{ UID string }
	}
}

// TestDashboard checks that each panel has a description, data source and unit, that panels do not
// overlap, and that every expression is valid.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(file(t, "grafana/holdfast.json")), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 20 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("%d panels, and %+v first of the variables", len(d.Panels), d.Templating.List[0])
	}
	ids, covered := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s has the number of another panel", p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := covered[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s covers %s, or leaves the page", p.Title, other)
				}
				covered[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q lacks a description, a unit, a target, or the variable for its data source", p.Title)
		}
		for _, target := range p.Targets {
			if target.LegendFormat == "" || target.RefID == "" || target.Datasource.UID != "${datasource}" {
				t.Errorf("%s: target %+v", p.Title, target)
			}
		}
	}
	promtool(t, "check", "rules", ruleFile(t, d.expressions()))
}

// expressions returns all expressions of the dashboard, with values for the variables.
func (d dashboard) expressions() (all []string) {
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, a.Expr)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__interval", "1m", "$__range", "6h", "$job", ".*", "$name", ".*")
	for i := range all {
		all[i] = variables.Replace(all[i])
	}
	return all
}

// ruleFile writes expressions as recording rules, which promtool can check.
func ruleFile(t *testing.T, expressions []string) (path string) {
	var text strings.Builder
	text.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for i, expr := range expressions {
		fmt.Fprintf(&text, "      - record: panel:%d\n        expr: %q\n", i, expr)
	}
	path = filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNamesInFiles checks that the dashboard and the alerts use only metrics, labels and label
// values that promlock exposes.
func TestNamesInFiles(t *testing.T) {
	known := exposed(t)
	var d dashboard
	if err := json.Unmarshal([]byte(file(t, "grafana/holdfast.json")), &d); err != nil {
		t.Fatal(err)
	}
	texts := append(d.expressions(), file(t, rules))
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			var query struct{ Query string }
			if err := json.Unmarshal(v.Query, &query); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, query.Query)
		}
	}
	used := map[string]bool{}
	for _, text := range texts {
		for _, problem := range known.check(text, used) {
			t.Error(problem)
		}
	}
	for name := range known {
		if name = family(name); !used[name] {
			t.Errorf("neither the dashboard nor an alert has %s", name)
		}
	}
}

// TestCheckOfNames checks that check finds wrong names.
func TestCheckOfNames(t *testing.T) {
	known := exposed(t)
	for text, wrong := range map[string]int{
		`sum by (name, job) (holdfast_held{mode="exclusive",job=~".*"})`: 0,
		`holdfast_hold_duration_seconds_bucket{le="1"}`:                  0,
		`sum by (le) (rate(holdfast_losses_total{cause!="broken"}[5m]))`: 1, // the metric has no le
		`holdfast_hold`:                                1,
		`holdfast_held{cause="broken"}`:                1,
		`holdfast_losses_total{cause="bored"}`:         1,
		`holdfast_held{mode="shared",pid="1"}`:         1,
		`sum by (cause, host) (holdfast_losses_total)`: 1,
	} {
		if got := known.check(text, map[string]bool{}); len(got) != wrong {
			t.Errorf("%s: %q, want %d problems", text, got, wrong)
		}
	}
}

// metrics maps the exposed metrics to their labels, and these to their values.
type metrics map[string]map[string][]string

var (
	series   = regexp.MustCompile(`(?m)^(holdfast_\w+)(?:\{(.*)\})? \S+$`)
	matcher  = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	selector = regexp.MustCompile(`(holdfast_\w+)(?:\{([^}]*)\})?`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// exposed returns the metrics at the end of a day. Prometheus adds the label job.
func exposed(t *testing.T) metrics {
	t.Helper()
	known := metrics{}
	for _, m := range series.FindAllStringSubmatch(file(t, "testdata/names.txt"), -1) {
		if known[m[1]] == nil {
			known[m[1]] = map[string][]string{"job": nil}
		}
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			known[m[1]][label[1]] = append(known[m[1]][label[1]], label[3])
		}
	}
	if len(known) < 20 {
		t.Fatalf("%d metrics: are they read?", len(known))
	}
	return known
}

// family returns the name of the metric to which a series belongs.
func family(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// check returns the unknown names in text, and records the used metrics.
func (known metrics) check(text string, used map[string]bool) (problems []string) {
	labels := map[string]bool{}
	for _, m := range selector.FindAllStringSubmatch(text, -1) {
		of, ok := known[m[1]]
		if !ok {
			problems = append(problems, "there is no "+m[1])
			continue
		}
		used[family(m[1])] = true
		for label := range of {
			labels[label] = true
		}
		for _, by := range matcher.FindAllStringSubmatch(m[2], -1) {
			values, ok := of[by[1]]
			exact := by[2] == "=" || by[2] == "!="
			if !ok || exact && len(values) > 0 && !slices.Contains(values, by[3]) {
				problems = append(problems, m[1]+" has no "+by[0])
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(text, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			if !labels[strings.TrimSpace(label)] {
				problems = append(problems, "nothing has the label "+label)
			}
		}
	}
	return problems
}

func file(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
