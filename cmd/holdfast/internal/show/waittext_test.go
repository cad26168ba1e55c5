package show

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
)

var deployer = holdfast.Holder{Host: "web-3", PID: 812, User: "deploy", Program: "deploy.sh", Reason: "release 1.4"}

// TestText checks every form of the text for a wait.
func TestText(t *testing.T) {
	ada := holdfast.Holder{Host: "ops-1", User: "ada", Person: true, Reason: "freeze"}
	for want, s := range map[string]holdfast.WaitState{
		`waiting for n: 2nd of 5, held 12m by deploy@web-3 (pid 812, deploy.sh): "release 1.4"`: {
			Place: 2, Queue: 5, Holder: deployer, Since: 12*time.Minute + 29*time.Second, ExpiresIn: 29 * time.Second},
		`waiting for n: 1st of 1, held 4m9s by deploy@web-3 (pid 812, deploy.sh): "release 1.4"`: {
			Place: 1, Queue: 1, Holder: deployer, Since: 4*time.Minute + 9900*time.Millisecond},
		`waiting for n: 3rd, held by web-3`:       {Place: 3, Holder: holdfast.Holder{Host: "web-3"}, Since: 900 * time.Millisecond},
		`waiting for n: held 1s by web-3 (pid 1)`: {Queue: 4, Holder: holdfast.Holder{Host: "web-3", PID: 1}, Since: time.Second},
		`waiting for n`:           {},
		`waiting for n: 1st of 2`: {Place: 1, Queue: 2, ExpiresIn: time.Second},
		`waiting for n: the store does not answer: refused`: {Place: 1, Queue: 2, Holder: deployer, Outage: errors.New("refused")},
		`waiting for n: 1st of 1, held 3h by ada@ops-1 (a person), ends in 45h: "freeze"`: {
			Place: 1, Queue: 1, Holder: ada, Since: 3 * time.Hour, ExpiresIn: 45 * time.Hour},
		`waiting for n: 1st of 1, kept closed for another 45s after deploy@web-3 (deploy.sh) released it`: {
			Place: 1, Queue: 1, Holder: deployer, Since: time.Minute, ExpiresIn: 44200 * time.Millisecond, Released: true},
		`waiting for n: 1st of 1, held by a client that is not holdfast, with no expiry`: {
			Place: 1, Queue: 1, ExpiresIn: holdfast.Never, Foreign: true},
		`waiting for n: held by a client that is not holdfast, ends in 12s unless it is renewed`: {ExpiresIn: 12 * time.Second, Foreign: true},
		`waiting for n: held by a@b: "\x1b[2J"`:                                                  {Holder: holdfast.Holder{Host: "b", User: "a", Reason: "\x1b[2J"}},
	} {
		s.Name = "n"
		if got := WaitText(s); got != want {
			t.Errorf("%+v is\n%s, want\n%s", s, got, want)
		}
	}
	if got := WaitText(holdfast.WaitState{Name: "a\nb"}); got != `waiting for a\nb` {
		t.Errorf("%q", got)
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{
		1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 10: "10th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 101: "101st", 111: "111th", 1002: "1002nd",
	} {
		if got := ordinal(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// TestTimesGoOn checks that the times of holder and wait count up, that the expiry counts down, and
// that unknown times stay unknown.
func TestTimesGoOn(t *testing.T) {
	s := stateAfter(holdfast.WaitState{Since: time.Minute, ExpiresIn: 5 * time.Second, Waited: time.Second}, 3*time.Second)
	if s.Since != 63*time.Second || s.ExpiresIn != 2*time.Second || s.Waited != 4*time.Second {
		t.Errorf("%+v", s)
	}
	if s = stateAfter(s, 3*time.Second); s.ExpiresIn != 0 {
		t.Errorf("%+v", s)
	}
	if s = stateAfter(holdfast.WaitState{ExpiresIn: holdfast.Never}, time.Hour); s.Since != 0 || s.ExpiresIn != holdfast.Never {
		t.Errorf("%+v", s)
	}
}

// TestFit checks that texts are cut to the width of a window, by the columns that characters take.
func TestFit(t *testing.T) {
	line := WaitText(holdfast.WaitState{Name: "deploy", Place: 2, Queue: 5, Holder: deployer, Since: 12 * time.Minute})
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{line, 1000, line},
		{line, 39, "waiting for deploy: 2nd of 5, held 1..."},
		{"abc", 3, "abc"}, {"abcd", 3, "..."}, {"abcde", 4, "a..."}, {"abcd", 1, "."}, {"abcd", 0, ""}, {"abcd", -1, ""}, {"", 0, ""},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日..."}, {"日本語", 4, "..."}, {"日本語", 2, ".."},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"}, {"e\u0301e\u0301e\u0301e\u0301e\u0301", 4, "e\u0301..."},
		{"🚀🚀", 4, "🚀🚀"}, {"🚀🚀🚀", 5, "🚀..."}, {"\u2764\ufe0fx", 4, "\u2764\ufe0fx"}, {"\u2764\ufe0fxx", 4, "..."},
	} {
		got := Fit(c.text, c.columns)
		if got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.text, c.columns, got, c.want)
		}
		width := 0
		for _, r := range got {
			width += runeWidth(r)
		}
		if width > max(c.columns, 0) {
			t.Errorf("%q takes %d columns of %d", got, width, c.columns)
		}
	}
	if got := runeWidth('한') + runeWidth('ｱ') + runeWidth('·') + runeWidth('…'); got != 5 {
		t.Errorf("four characters take %d columns", got)
	}
}

// TestWaitTextFits checks that place, times and holder stay longest, and that the end is cut only
// when there is nothing else to leave out.
func TestWaitTextFits(t *testing.T) {
	s := holdfast.WaitState{Name: "deploy", Place: 2, Queue: 5, Holder: deployer, Since: 12 * time.Minute}
	for columns, want := range map[int]string{
		80:  `waiting for deploy: 2nd of 5, held 12m by deploy@web-3: "release 1.4"`,
		120: `waiting for deploy: 2nd of 5, held 12m by deploy@web-3 (pid 812, deploy.sh): "release 1.4"`,
		60:  `deploy: 2nd of 5, held 12m by deploy@web-3: "release 1.4"`,
		50:  `deploy: 2nd of 5, held 12m by deploy@web-3: "re...`,
		20:  `deploy: 2nd of 5,...`,
	} {
		if got := waitTextOf(s, columns); got != want {
			t.Errorf("in %d columns it is\n%s, want\n%s", columns, got, want)
		}
	}
}
