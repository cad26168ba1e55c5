package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// The measures of a picture, in its own units.
const (
	width      = 760
	labelWidth = 180
	valueWidth = 110
	rowHeight  = 26
	barHeight  = 14
	headHeight = 58
	footHeight = 16
)

// style makes a picture readable on light and dark pages, and without colour: each bar has its
// name and its figure in text, the bars of the highlighted peer are filled, the others are
// outlined, and floors are dashed.
const style = `
    svg { color-scheme: light dark; font: 13px system-ui, sans-serif; }
    text { fill: #1f2328; }
    .title { font-size: 16px; font-weight: 600; }
    .quiet { fill: #59636e; }
    .own { font-weight: 600; }
    .bar { fill: #eaeef2; stroke: #59636e; }
    .own.bar { fill: #0b6e4f; stroke: #0b6e4f; }
    .floor.bar { stroke-dasharray: 4 3; }
    .range { stroke: #1f2328; stroke-width: 1.5; }
    .own.range { stroke: #e3a008; }
    .cut { stroke: #ffffff; stroke-width: 5; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .quiet { fill: #9198a1; }
      .bar { fill: #262c36; stroke: #9198a1; }
      .own.bar { fill: #1f7a58; stroke: #3fb68b; }
      .range { stroke: #e6edf3; }
      .own.range { stroke: #ffd866; }
      .cut { stroke: #0d1117; }
    }
`

// WriteSVG draws the first metric of the workload: a bar for each peer with samples, and a line
// from the least to the greatest of them. The bars of peers whose names begin with own are
// filled.
func (w *Workload) WriteSVG(to io.Writer, own string) error {
	metric, peers := w.Metrics[0], w.measured()
	height := headHeight + rowHeight*len(peers) + footHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title desc">`+"\n", width, height)
	fmt.Fprintf(&b, "  <title id=\"title\">%s</title>\n  <desc id=\"desc\">%s</desc>\n", html.EscapeString(w.Title), html.EscapeString(w.describe(peers)))
	fmt.Fprintf(&b, "  <style>%s  </style>\n", style)
	fmt.Fprintf(&b, "  <text class=\"title\" x=\"10\" y=\"24\">%s</text>\n", html.EscapeString(w.Title))
	fmt.Fprintf(&b, "  <text class=\"quiet\" x=\"10\" y=\"44\">%s: %s is better; the line is the range of the rounds; dashed: floors; cut: far off</text>\n", html.EscapeString(heading(metric)), metric.Better)
	scale := newScale(metric, peers)
	for i, p := range peers {
		class := ""
		switch {
		case strings.HasPrefix(p.Name, own):
			class = "own "
		case p.Floor:
			class = "floor "
		}
		scale.drawRow(&b, class, headHeight+rowHeight*i, p, p.Samples[metric.Name])
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(to, b.String())
	return err
}

// measured returns the peers that have samples of the first metric.
func (w *Workload) measured() (peers []Peer) {
	for _, p := range w.Peers {
		if len(p.Samples[w.Metrics[0].Name]) > 0 {
			peers = append(peers, p)
		}
	}
	return peers
}

// describe returns the picture as text.
func (w *Workload) describe(peers []Peer) string {
	parts := make([]string, len(peers))
	for i, p := range peers {
		parts[i] = fmt.Sprintf("%s %s", label(p), Figure(Median(p.Samples[w.Metrics[0].Name])))
	}
	return heading(w.Metrics[0]) + ": " + strings.Join(parts, "; ")
}

// A scale turns figures into lengths.
type scale struct{ perUnit, longest float64 }

// farOff is the multiple of the median above which a bar is cut, so that the others stay
// readable.
const farOff = 5

// newScale returns the scale at which the longest uncut bar just fits. If more is better, no bar
// is cut.
func newScale(m Metric, peers []Peer) scale {
	var medians []float64
	longest, limit := 0.0, math.Inf(1)
	for _, p := range peers {
		medians = append(medians, Median(p.Samples[m.Name]))
	}
	if m.Better == Less {
		limit = farOff * Median(medians)
	}
	for _, p := range peers {
		_, most := Range(p.Samples[m.Name])
		longest = math.Max(longest, math.Min(most, limit))
	}
	if longest == 0 {
		return scale{}
	}
	return scale{perUnit: (width - labelWidth - valueWidth) / longest, longest: longest}
}

// at returns the x coordinate of a figure.
func (s scale) at(v float64) float64 { return labelWidth + math.Min(v, s.longest)*s.perUnit }

func (s scale) drawRow(b *strings.Builder, class string, top int, p Peer, samples []float64) {
	least, greatest := Range(samples)
	middle, median := top+rowHeight/2, Median(samples)
	fmt.Fprintf(b, "  <text class=\"%sname\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", class, labelWidth-8, middle+4, html.EscapeString(p.Name))
	fmt.Fprintf(b, "  <rect class=\"%sbar\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n", class, labelWidth, middle-barHeight/2, s.at(median)-labelWidth, barHeight)
	if greatest <= s.longest {
		fmt.Fprintf(b, "  <line class=\"%srange\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%[4]d\"/>\n", class, s.at(least), s.at(greatest), middle)
	} else {
		fmt.Fprintf(b, "  <path class=\"cut\" d=\"M%.1f %d l6 %d\"/>\n", s.at(greatest)-18, middle+barHeight/2+3, -barHeight-6)
	}
	fmt.Fprintf(b, "  <text class=\"%sfigure\" x=\"%.1f\" y=\"%d\">%s</text>\n", class, s.at(greatest)+8, middle+4, Figure(median))
}
