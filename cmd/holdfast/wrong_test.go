//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/cli"
)

// wrong are invocations that cannot be meant: the exit status, the arguments in shell syntax, and
// words of the one line with the error.
var wrong = []struct {
	status     int
	args, says string
}{
	// The program.
	{64, `bogus`, `unknown command "bogus"`},
	{64, `--bogus`, `--bogus`},
	{64, `-Z`, `-Z`},
	{64, `rnu job -- true`, `did you mean holdfast run`},
	{64, `--store`, `--store`},
	{64, `--store '' ls`, `--store`},
	{64, `--store sqlite:///x --store-file y ls`, `--store`},
	{78, `--store bogus://host ls`, `bogus`},
	{78, `--store sqlite://relative.db ls`, `three slashes`},
	{78, `--store /no/such/directory ls`, `did you mean sqlite:///no/such/directory?`},
	{78, `--store sqlite:///no/such/directory/locks.db ls`, `/no/such/directory`},
	{78, `--store redis:// ls`, `no host`},
	{78, `--store redis://host:port ls`, `malformed`},

	// run: what to run, under which name.
	{64, `run`, `no lock name`},
	{64, `run job`, `no command`},
	{64, `run job --`, `no command`},
	{64, `run job -- ''`, `no command`},
	{64, `run '' -- true`, `empty`},
	{64, `run "$(printf 'a\tb')" -- true`, `control character U+0009`},
	{64, `run "$(printf 'a\377')" -- true`, `UTF-8`},
	{64, `run "$(printf '%0513d' 7)" -- true`, `513 bytes`},
	{64, `run -c true job -- true`, `-c and a command`},
	{64, `run -c true job -c true`, `-c is given twice`},
	{64, `run job -c`, `-c`},
	{64, `run job -n true`, `"-n" follows the name`},
	{64, `run -N a b -- true`, `"b"`},
	{64, `run a -N b -- true`, `"a"`},
	{64, `run -N a -N a -- true`, `given twice`},
	{64, `run -N a -N '' -- true`, `empty`},
	{64, `run -N a`, `no command`},
	{64, `run 9`, `eval "$(holdfast acquire NAME --pid $$ || echo exit $?)"`},
	{64, `run -u 9`, `-u`},
	{64, `run -F job true`, `-F`},
	{64, `run -o --wait-children job true`, `-o`},
	{64, `run --bogus job -- true`, `--bogus`},
	{64, `run -Z job -- true`, `-Z`},
	{127, `run job -- no-such-command`, `no-such-command`},
	{127, `run job -- ./no-such-file`, `no-such-file`},
	{126, `run job -- /`, `/`},
	{126, `run job -- /etc/passwd`, `/etc/passwd`},

	// run: how.
	{64, `run -w soon job -- true`, `-w "soon"`},
	{64, `run -w -1 job -- true`, `-w "-1"`},
	{64, `run -w NaN job -- true`, `-w "NaN"`},
	{64, `run --timeout 1e300 job -- true`, `too long`},
	{64, `run -n -w 1 job -- true`, `-n and -w`},
	{64, `run -E 256 job -- true`, `-E 256`},
	{64, `run -E many job -- true`, `-E "many"`},
	{64, `run --no-wait=perhaps job -- true`, `-n "perhaps"`},
	{64, `run -s -x job -- true`, `exclude one another`},
	{64, `run -s --slots 2 job -- true`, `exclude one another`},
	{64, `run --slots 0 job -- true`, `--slots 0`},
	{64, `run --slots 1000001 job -- true`, `--slots 1000001`},
	{64, `run --permits 2 job -- true`, `--slots`},
	{64, `run --slots 2 --permits 3 job -- true`, `--permits 3`},
	{64, `run --ttl 9ms job -- true`, `9ms`},
	{64, `run --ttl 99ms job -- true`, `--ttl 99ms`},
	{64, `run --ttl 721h job -- true`, `721h`},
	{64, `run --ttl 30S job -- true`, `--ttl "30S"`},
	{64, `run --min-hold 0 job -- true`, `--min-hold "0": want more than 0`},
	{64, `run --min-hold 3s --max-hold 2s job -- true`, `3s`},
	{64, `run --max-hold 50ms job -- true`, `--max-hold 50ms`},
	{64, `run --ttl 2s --kill-after 1001ms job -- true`, `--kill-after 1.001s`},
	{64, `run --on-lost panic job -- true`, `--on-lost "panic"`},
	{64, `run --label novalue job -- true`, `--label "novalue"`},
	{64, `run --label =x job -- true`, `--label "=x"`},
	{64, `run --reason "$(printf 'a\nb')" job -- true`, `control`},
	{64, `run --reason "$(printf '%05000d' 7)" job -- true`, `4096`},
	{64, `run --status-fd 2 job -- true`, `--status-fd`},
	{64, `run --status-fd 199 job -- true`, `--status-fd`},
	{64, `run --status-fd x job -- true`, `--status-fd "x"`},
	{64, `run --stall-after 0 job -- true`, `--stall-after "0"`},
	{64, `run --stall-after 1s --no-keep-alive job -- true`, `exclude one another`},

	// once.
	{64, `once`, `no key`},
	{64, `once job`, `no command`},
	{64, `once job --`, `no command`},
	{64, `once job true`, `no command`},
	{64, `once job another -- true`, `"another"`},
	{64, `once -- -- true`, `no key`},
	{64, `once '' -- true`, `empty`},
	{64, `once -c true`, `no key`},
	{64, `once -n -w 3 job -- true`, `-n and -w`},
	{64, `once -E -1 job -- true`, `-E -1`},
	{64, `once -s job -- true`, `-s`},
	{64, `once --retention 9ms job -- true`, `--retention "9ms": want 10ms to`},
	{64, `once --retention 90000h job -- true`, `--retention "90000h"`},
	{64, `once --max-output 0 job -- true`, `--max-output 0`},
	{64, `once --max-output 16777217 job -- true`, `--max-output 16777217`},
	{64, `once --fingerprint "$(printf '%0257d' 7)" job -- true`, `256 bytes`},
	{64, `once --fingerprint "$(printf 'a\tb')" job -- true`, `control`},
	{64, `once --ttl 99ms job -- true`, `--ttl 99ms`},
	{64, `once --json job -- true`, `--json`},
	{127, `once job -- no-such-command`, `no-such-command`},
	{64, `once status`, `want holdfast once status KEY`},
	{64, `once status a b`, `"b" is too much`},
	{64, `once status ''`, `empty`},
	{64, `once status job --replay`, `--replay`},
	{64, `once forget job --ttl 3s`, `--ttl`},
	{64, `once list a b`, `list`},
	{64, `once begin`, `want holdfast once begin KEY`},
	{64, `once begin a b`, `"b" is too much`},
	{64, `once begin ''`, `empty`},
	{64, `once begin job --pid 0`, `--pid 0`},
	{64, `once begin job --pid x`, `--pid "x"`},
	{64, `once begin job -n -w 3`, `-n and -w`},
	{64, `once begin job --ttl 99ms`, `--ttl 99ms`},
	{64, `once begin job --value x`, `--value`},
	{64, `once complete`, `want holdfast once complete KEY`},
	{64, `once complete job --pid 1`, `--pid`},
	{78, `once complete job </dev/null`, `not begun`},
	{64, `once fail ''`, `empty`},
	{78, `once fail job`, `not begun`},
	{64, `once job --value x -- true`, `--value`},

	// Commands that read.
	{64, `ls a b`, `ls`},
	{64, `ls --bogus`, `--bogus`},
	{64, `show`, `show`},
	{64, `show a b`, `show`},
	{64, `show ''`, `empty`},
	{78, `check`, `no lease in the environment`},
	{64, `check a b`, `check`},
	{64, `check ''`, `empty`},
	{64, `check job -v`, `-v`},
	{64, `version extra`, `extra`},
	{64, `doctor extra`, `extra`},
	{64, `doctor --ttl 9ms`, `--ttl "9ms": want 10ms to 720h`},
	{64, `doctor --ttl ''`, `--ttl ""`},
	{64, `bench extra`, `extra`},
	{64, `bench --for 0`, `--for`},
	{64, `bench --for soon`, `--for "soon"`},
	{64, `completion`, `bash, zsh or fish`},
	{64, `completion tcsh`, `bash, zsh or fish`},

	// break and token.
	{64, `break job`, `no reason`},
	{64, `break job --reason why --closed=x`, `closed`},
	{64, `wait`, `want holdfast wait`},
	{64, `wait ''`, `empty`},
	{64, `wait job -w soon`, `soon`},
	{64, `bench job`, `too much`},
	{64, `watch a b`, `too much`},
	{64, `history`, `want holdfast history NAME`},
	{64, `history a b`, `too much`},
	{64, `history ''`, `empty`},
	{64, `history a --token 1`, `--token`},
	{64, `watch --interval 0`, `--interval "0"`},
	{64, `watch --interval 2h`, `"2h": want 100ms to 1h`},
	{64, `bench --for 0.5`, `--for "0.5": want 1s to 5m`},
	{64, `once status -- true`, `holdfast once -- status -- COMMAND`},
	{64, `once list --ttl 1s`, `--ttl`},
	{64, `break job --reason ' '`, `no reason`},
	{64, `break --reason why`, `break`},
	{64, `break a b --reason why`, `break`},
	{64, `break '' --reason why`, `empty`},
	{64, `break job --reason why --token 0`, `--token 0`},
	{64, `break job --reason why --token -1`, `--token "-1"`},
	{64, `break job --reason "$(printf 'a\tb')"`, `control`},
	{64, `token`, `issue`},
	{64, `token bogus`, `bogus`},
	{64, `token issue text`, `standard input`},
	{64, `token issue - --value text`, `unknown flag: --value`},
	{64, `token issue --ttl 0`, `ttl`},
	{64, `token issue --ttl 1ms`, `1ms`},
	{64, `token issue --collection ''`, `--collection`},
	{64, `token redeem`, `standard input`},
	{64, `token redeem secret`, `standard input`},
	{64, `token revoke`, `standard input`},
	{64, `token prune a`, `a`},

	// serve.
	{64, `serve extra`, `extra`},
	{64, `serve --listen ''`, `--listen "": want host:port`},
	{64, `serve --callers '' extra`, `--callers "": it is empty`},
	{64, `serve --tls-cert '' --tls-key '' extra`, `--tls-cert "": it is empty`},
	{64, `serve --secret-file '' extra`, `--secret-file "": it is empty`},
	{64, `serve --metrics-listen '' extra`, `--metrics-listen "": it is empty`},
	{64, `serve --listen nowhere`, `"nowhere"`},
	{64, `serve --listen http://127.0.0.1:0`, `want host:port`},
	{64, `serve --listen unix://relative`, `three slashes`},
	{64, `serve --drain 0`, `--drain "0"`},
	{64, `serve --drain 2h`, `--drain "2h": want more than 0, and up to 1h`},
	{64, `serve --tls-cert x`, `--tls-key`},
	{64, `serve --metrics-listen nowhere`, `--metrics-listen "nowhere"`},
	{78, `serve --secret-file /no/such/file`, `/no/such/file`},
	{78, `serve --tls-cert /no/such/file --tls-key x`, `/no/such/file`},
	{64, `serve --limit streams=0`, `--limit "streams=0"`},
	{64, `serve --limit readers=1`, `"readers=1"`},
	{78, `serve --callers /no/such/file`, `/no/such/file`},
	{64, `serve add-caller`, `want holdfast serve add-caller`},
	{64, `serve add-caller file shop`, `--prefix`},
	{64, `serve add-caller file shop --prefix ''`, `--right`},
	{64, `serve add-caller file shop --prefix '' --right everything`, `"everything"`},
	{64, `serve add-caller file '' --prefix '' --right read`, `empty`},
	{78, `serve add-caller /no/such/file shop --prefix '' --right read`, `/no/such`},
	{64, `serve --log xml`, `"xml"`},
	{64, `serve --log json,loud`, `"loud"`},
	{78, `serve --listen 0.0.0.0:0`, `--callers`},
	{78, `serve --listen :0`, `other hosts can reach`},
	{78, `serve --listen '[::]:0'`, `other hosts can reach`},

	// Commands for programs under a lock, and for scripts.
	{64, `acquire`, `want one NAME`},
	{64, `acquire a b`, `want one NAME`},
	{64, `acquire ''`, `empty`},
	{64, `acquire job --pid 0`, `--pid`},
	{64, `acquire job --pid -1`, `--pid`},
	{64, `acquire job --pid x`, `--pid "x"`},
	{64, `acquire job --pid 99999999`, `99999999`},
	{64, `acquire job --min-hold 3s`, `--pid`},
	{64, `acquire job --ttl 99ms --pid $$`, `--ttl 99ms`},
	{64, `acquire job -n -w 1 --pid $$`, `-n and -w`},
	{64, `acquire job --nb -E 256 --pid $$`, `-E 256`},
	{78, `--store memory: acquire job --pid 1`, `memory:`},
	{64, `hold`, `NAME`},
	{64, `hold job`, `--for`},
	{64, `hold job --for 48h`, `--reason`},
	{64, `hold job --reason why`, `--for`},
	{64, `hold job --for 0 --reason why`, `--for`},
	{64, `hold job --for 2x --reason why`, `--for "2x"`},
	{64, `hold job --for 48h --reason ' '`, `--reason`},
	{64, `hold '' --for 48h --reason why`, `empty`},
	{64, `hold a b --for 48h --reason why`, `NAME`},
	{64, `hold job --for 48h --reason why -n -w 3`, `-n and -w`},
	{78, `hold job --extend --for 48h`, `you do not hold it`},
	{78, `release job`, `do not hold`},
	{64, `release ''`, `empty`},
	{64, `elect`, `no lock name`},
	{64, `elect job`, `no command`},
	{64, `elect '' -- true`, `empty`},
	{64, `elect job --pause 2h -- true`, `--pause`},
	{64, `elect job --stall-after 0 -- true`, `--stall-after "0"`},
	{64, `elect --ttl 99ms job -- true`, `--ttl 99ms`},
	{64, `elect -n job -- true`, `-n`},
	{64, `elect job -v true`, `"-v" follows the name`},
	{127, `elect job -- no-such-command`, `no-such-command`},
	{64, `extend`, `extend`},
	{64, `extend soon`, `soon`},
	{64, `heartbeat a b`, `heartbeat`},
	{64, `release a b`, `release`},
}

// TestWrongInvocations checks that each invocation has its status, one line on standard error and
// nothing on standard output, and makes no file.
func TestWrongInvocations(t *testing.T) {
	home := t.TempDir()
	env := []string{
		"HOME=" + home, "XDG_STATE_HOME=" + home + "/state", "XDG_CONFIG_HOME=" + home + "/config", "TMPDIR=" + home,
		"XDG_RUNTIME_DIR=" + home, "GORACE=" + quickExit, "PATH=" + os.Getenv("PATH"),
	}
	for _, w := range wrong {
		cmd := exec.Command("sh", "-c", "exec holdfast "+w.args)
		cmd.Dir, cmd.Env = home, env
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the status is checked
		line, found := strings.CutSuffix(stderr.String(), "\n")
		switch {
		case cmd.ProcessState.ExitCode() != w.status:
			t.Errorf("holdfast %s: status %d, want %d\n%s", w.args, cmd.ProcessState.ExitCode(), w.status, stderr.String())
		case !found || strings.Contains(line, "\n") || !strings.HasPrefix(line, "holdfast: "):
			t.Errorf("holdfast %s: want one line of ours on standard error:\n%s", w.args, stderr.String())
		case !strings.Contains(line, w.says):
			t.Errorf("holdfast %s: %s\nwant it to say %q", w.args, line, w.says)
		case stdout.String() == fmt.Sprintf("exit %d\n", w.status) && strings.Contains(w.args, "acquire"): // for eval
		case stdout.Len() > 0 && (!strings.Contains(w.args, "--json") || !json.Valid(stdout.Bytes())):
			t.Errorf("holdfast %s: it prints %q", w.args, stdout.String())
		}
		for _, file := range filesBelow(t, home) {
			t.Errorf("holdfast %s: it has made %s", w.args, file)
			if err := os.RemoveAll(filepath.Join(home, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d wrong invocations", len(wrong))
}

// TestEachCommandIsInvokedWrongly checks that the table has all commands.
func TestEachCommandIsInvokedWrongly(t *testing.T) {
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "holdfast ")
		found := 0
		for _, w := range wrong {
			if w.args == path || strings.HasPrefix(w.args, path+" ") {
				found++
			}
		}
		if found == 0 && cmd.HasParent() {
			t.Errorf("holdfast %s: no wrong invocation of it is in the table", path)
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(cli.Tree())
}

// filesBelow returns the paths of all files and directories in dir.
func filesBelow(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		if path != "." {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
