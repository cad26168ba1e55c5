package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// prelude contains the functions that the cases share. $LOCK is the command that locks. A pipe ends
// the holders, so that no case depends on the speed of the machine.
const prelude = `
hold() { # hold [FLAG...]: returns when a process in the background has the lock
	mkfifo has end
	$LOCK "$@" lock sh -c 'echo >has; read x <end; echo first >>log' &
	read x <has
}
free() { # returns when the holder has gone
	echo >end
	wait
	rm has end
}
status() { "$@" 2>>messages; echo $?; }
`

// flockCases are scripts for flock(1), with the output that they expect.
var flockCases = []struct{ name, script, want string }{
	// The cases of util-linux's own tests of flock.
	{"non-block", `hold --shared; status $LOCK --nonblock --conflict-exit-code 123 lock echo never; free`, "123"},
	{"shared", `hold --shared; status $LOCK --shared lock echo shared; free`, "shared 0"},
	{"exclusive", `hold --shared; status $LOCK --nonblock --exclusive --conflict-exit-code 123 lock echo never; free`, "123"},
	{"timeout", `hold --shared
		(touch begun; status $LOCK --timeout 30 --conflict-exit-code 5 lock sh -c 'echo second >>log') >late &
		until [ -e begun ]; do :; done
		free; cat log late`, "first second 0"},

	// The other spellings of flags, and letters in one argument.
	{"letters", `hold; for n in -n --nb --nonblock; do for e in -E --conflict-exit-code; do status $LOCK $n $e 9 lock echo never; done; done; free`,
		"9 9 9 9 9 9"},
	{"exclusive letters", `hold -s; for x in -x -e --exclusive; do status $LOCK $x -n -E 9 lock echo never; done; status $LOCK -en -E9 lock echo never; free`,
		"9 9 9 9"},
	{"exclusive excludes shared", `hold -e; status $LOCK -sn -E 9 lock echo never; free; status $LOCK -sn -E 9 lock echo free`, "9 free 0"},
	{"equals sign", `hold; status $LOCK --timeout=0.05 --conflict-exit-code=9 lock echo never; free`, "9"},

	// Times.
	{"timeout is over", `hold; for w in -w --wait --timeout; do status $LOCK $w 0.05 -E 9 lock echo never; done; free`, "9 9 9"},
	{"timeout 0", `hold; for w in 0 0.0 0e1; do status $LOCK -w $w -E 9 lock echo never; done; free; status $LOCK -w 0 -E 9 lock echo free`, "9 9 9 free 0"},
	{"no conflict, no timeout", `status $LOCK -n -E 9 lock echo a; status $LOCK -w .05 -E 9 lock echo b`, "a 0 b 0"},

	// Statuses.
	{"conflict exit code 0", `hold; status $LOCK -n -E 0 lock echo never; status $LOCK -n -E 255 lock echo never; free`, "0 255"},
	{"the command's status", `for s in 0 1 9 255; do status $LOCK -n -E 9 lock sh -c "exit $s"; done`, "0 1 9 255"},
	{"a signal's status", `for s in TERM KILL; do status $LOCK lock sh -c "kill -$s \$\$"; done`, "143 137"},
	{"wrong arguments", `for a in "" "-n" "lock" "-E 256 lock true" "-E -1 lock true" "-E x lock true" "-w x lock true" "--bogus lock true" "-o -F lock true" \
		"lock -c" "lock -c echo a" "-u lock"; do status $LOCK $a; done`, strings.Repeat("64 ", 12)},

	// Commands.
	{"a shell's command", `status $LOCK lock -c 'echo "a  b" | tr a c; exit 3'; status $LOCK lock --command 'exit 4'`, "c b 3 4"},
	{"arguments", `status $LOCK -n lock printf '%s|' 'a  b' -n '' '*'`, "a b|-n||*|0"},
	{"a script that names no interpreter", `echo 'echo "ran $*"; exit 3' >plain; chmod +x plain; status $LOCK lock ./plain a 'b  c'
		PATH=$PWD:$PATH status $LOCK lock plain d; PATH=:$PATH status $LOCK lock plain e; : >plain; status $LOCK lock ./plain`, "ran a b c 3 ran d 3 ran e 3 0"},
	{"input", `echo in | status $LOCK lock cat`, "in 0"},
	{"close", `mkfifo end; status $LOCK -o lock sh -c 'read x <end & echo left'; status $LOCK --close -n -E 9 lock echo free; echo >end; rm end`, "left 0 free 0"},
	{"nested", `status $LOCK -n lock $LOCK -n another echo both`, "both 0"},
	{"a script that locks itself", `cat >self <<'E'
#!/bin/sh
[ "${FLOCKER}" != "$0" ] && exec env FLOCKER="$0" $LOCK -en -E 9 "$0" "$0" "$@" || :
echo "locked $*"
E
		chmod +x self; status ./self a 'b  c'`, "locked a b c 0"},
	{"help and version", `for a in -h --help -V --version; do $LOCK $a >/dev/null; echo $?; done`, "0 0 0 0"},
}

// TestFlockCases runs scripts for flock(1) with holdfast run in its place.
func TestFlockCases(t *testing.T) {
	for _, c := range flockCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			flockCase(t, "holdfast run", c.script, c.want)
		})
	}
}

// flockCase runs a script with lock as the command that locks.
func flockCase(t *testing.T, lock, script, want string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", prelude+script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LOCK="+lock, "HOLDFAST_STORE=sqlite://"+filepath.Join(dir, "locks.db"))
	out, err := cmd.Output()
	messages, _ := os.ReadFile(filepath.Join(dir, "messages")) // only for the error message
	if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != strings.TrimSpace(want) {
		t.Errorf("%s: %q, %v; want %q\n%s", lock, got, err, want, messages)
	}
}
