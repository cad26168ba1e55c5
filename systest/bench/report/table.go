package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// WriteMarkdown writes the run as a page: the machine, the goals, and a table of each workload.
// With pictures, the page shows the SVG files in its folder. why explains goals that are not met.
func (r *Run) WriteMarkdown(w io.Writer, pictures bool, why string) error {
	var b strings.Builder
	r.writeHead(&b)
	r.writeVerdicts(&b)
	if why = strings.TrimSpace(why); why != "" {
		fmt.Fprintf(&b, "\n## Where it falls short, and why\n\n%s\n", why)
	}
	for i := range r.Workloads {
		load := &r.Workloads[i]
		fmt.Fprintf(&b, "\n## %s\n\n%s.", load.Name, load.Title)
		if load.Note != "" {
			fmt.Fprintf(&b, " %s", load.Note)
		}
		b.WriteString("\n\n")
		if pictures {
			fmt.Fprintf(&b, "![%s](%s.svg)\n\n", load.Title, load.Name)
		}
		load.writeTable(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Run) writeHead(b *strings.Builder) {
	fmt.Fprintf(b, "# Benchmark of %s\n\n", r.Date)
	fmt.Fprintf(b, "Commit %s, %d cores, %s.\n", r.Commit, r.Cores, r.Machine)
	fmt.Fprintf(b, "%d interleaved rounds of %s s in each of %d hours (%s); figures are medians, ranges in brackets, and × is the ratio of medians.\n\n",
		r.Rounds, Figure(r.Seconds), len(r.Hours), strings.Join(r.Hours, ", "))
	fmt.Fprintf(b, "    %s\n\n", r.Command)
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(b, "- %s %s\n", name, r.Versions[name])
	}
}

func (r *Run) writeVerdicts(b *strings.Builder) {
	if len(r.Verdicts) == 0 {
		return
	}
	met := 0
	for _, v := range r.Verdicts {
		if v.Met && v.Hours >= Hours {
			met++
		}
	}
	fmt.Fprintf(b, "\n## Goals\n\n%d of %d are met. A goal counts as met when it was measured in %d different hours.\n\n| | goal | measured | |\n|---|---|---:|---|\n", met, len(r.Verdicts), Hours)
	for _, v := range r.Verdicts {
		figure := "–"
		if v.Measured {
			figure = fmt.Sprintf("%s [%s, %s]", Figure(v.Figure), Figure(v.Least), Figure(v.Greatest))
		}
		fmt.Fprintf(b, "| [%s](#%s) | %s | %s | %s |\n", v.Title, v.Workload, v.Bound(), figure, v.Outcome())
	}
}

// writeTable writes a row for each peer, with the ratio of its first metric to the
// base's.
func (w *Workload) writeTable(b *strings.Builder) {
	b.WriteString("| peer |")
	for _, m := range w.Metrics {
		fmt.Fprintf(b, " %s |", heading(m))
	}
	fmt.Fprintf(b, " × %s |\n|---|%s---:|\n", cmp.Or(w.Base, "–"), strings.Repeat("---:|", len(w.Metrics)))
	for _, p := range w.Peers {
		fmt.Fprintf(b, "| %s |", label(p))
		for _, m := range w.Metrics {
			fmt.Fprintf(b, " %s |", spread(p.Samples[m.Name]))
		}
		fmt.Fprintf(b, " %s |\n", cmp.Or(p.Reason, w.ratio(p.Name)))
	}
}

// label returns a peer's name, with its settings if it has any.
func label(p Peer) string {
	text := p.Name
	if p.Floor {
		text += " (floor)"
	}
	if p.Settings != "" {
		text += ": " + p.Settings
	}
	return text
}

func heading(m Metric) string {
	if m.Unit == "" {
		return m.Title
	}
	return m.Title + ", " + m.Unit
}

// ratio returns the first metric of a peer as a multiple of the base's.
func (w *Workload) ratio(name string) string {
	own, ok := w.median(name, w.Metrics[0].Name)
	other, both := w.median(w.Base, w.Metrics[0].Name)
	if !ok || !both || other == 0 {
		return "–"
	}
	return Figure(own / other)
}

// spread returns the median of samples, and their range.
func spread(samples []float64) string {
	if len(samples) == 0 {
		return "–"
	}
	least, greatest := Range(samples)
	return fmt.Sprintf("%s [%s, %s]", Figure(Median(samples)), Figure(least), Figure(greatest))
}

// Figure formats a number with three significant digits, and all digits before the point: 0.0312,
// 4.2, 11,431.
func Figure(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a >= 100:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case a == 0:
		return "0"
	default:
		digits := 2 - int(math.Floor(math.Log10(a)))
		text := strconv.FormatFloat(v, 'f', digits, 64)
		return strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
}

// thousands puts commas between the digits of a whole number.
func thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
