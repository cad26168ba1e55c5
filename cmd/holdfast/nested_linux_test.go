package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// password is the password of the stores of these tests. No process may have it in its arguments,
// nor in its environment unless the user put it there.
const password = "s3cret-of-ada"

// A told is a way to choose the store of a command.
type told struct {
	how  string
	env  []string // of the shell in which the user types
	args []string // before the first command
}

// ways returns the ways to choose a store without naming it in each command.
func ways(t *testing.T, url string) []told {
	t.Helper()
	dir := t.TempDir()
	file, config := filepath.Join(dir, "store"), filepath.Join(dir, "config")
	for path, text := range map[string]string{file: url, filepath.Join(config, "holdfast.conf"): "store = " + url + "\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []told{
		{"variable", []string{"HOLDFAST_STORE=" + url}, nil},
		{"file in the environment", []string{"HOLDFAST_STORE_FILE=" + file}, nil},
		{"file", nil, []string{"--store-file", file}},
		{"configuration", []string{"XDG_CONFIG_HOME=" + config}, nil},
	}
}

// inner is the script of the innermost run. It acquires another lock, which a keeper renews.
const inner = `
eval "$(holdfast acquire -n d --pid $$ || echo exit $?)"
echo up >&2
cat
holdfast ls
`

// nest starts three runs, one inside the other with shells in between, and returns when the
// innermost command runs. That command ends when its standard input ends.
func (u told) nest(t *testing.T, program string) (outermost *exec.Cmd, release func() string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "inner"), []byte(inner), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append(u.args, "run", "-n", "a", "--", "sh", "-c",
		program+` run -n b -- sh -c "`+program+` run -n c -- sh inner"`)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "HOLDFAST_") }), u.env...)
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := filepath.Join(t.TempDir(), "stderr")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, create(t, errs)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() }) // the command ends then; a second Close does nothing
	eventually(t, "the innermost command runs", func() bool { return strings.Contains(read(t, errs), "up\n") })
	return cmd, func() string {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", u.how, err, read(t, errs))
		}
		return out.String() + read(t, errs)
	}
}

// family returns a process and all its descendants.
func family(t *testing.T, pid int) []int {
	t.Helper()
	all := []int{pid}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread may have ended
		for _, child := range strings.Fields(string(children)) {
			n, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, family(t, n)...)
		}
	}
	return all
}

// hidesPassword fails the test if a process has the password in its arguments, or in an entry of
// its environment that the user did not set.
func (u told) hidesPassword(t *testing.T, pid int) {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || bytes.Contains(line, []byte(password)) {
		t.Errorf("%s: process %d: %q, %v", u.how, pid, line, err)
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || len(env) == 0 {
		t.Errorf("%s: the environment of process %d: %v", u.how, pid, err)
	}
	for entry := range strings.SplitSeq(string(env), "\x00") {
		if strings.Contains(entry, password) && !slices.Contains(u.env, entry) {
			t.Errorf("%s: process %d (%q) has %s", u.how, pid, line, entry)
		}
	}
}

// threeLevels runs commands on three levels of nesting, in each of the ways. It checks that they
// reach the store and do not show the password, and calls look while they hold their locks.
func threeLevels(t *testing.T, program, url string, look func(how string)) {
	t.Helper()
	for _, u := range ways(t, url) {
		cmd, release := u.nest(t, program)
		all := family(t, cmd.Process.Pid)
		if len(all) < 3*3+1 { // holdfast, warden and shell of each level; the keeper
			t.Errorf("%s: only %d processes", u.how, len(all))
		}
		for _, pid := range all {
			u.hidesPassword(t, pid)
		}
		look(u.how)
		said := release()
		if strings.Contains(said, password) {
			t.Errorf("%s: it says\n%s", u.how, said)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if !strings.Contains(said, "\n"+name+"\t") {
				t.Errorf("%s: the innermost command does not see %s:\n%s", u.how, name, said)
			}
		}
	}
}

// hasAda gives a server the user ada, who may do what locks need, and turns the default user off.
func hasAda(t *testing.T, server *testsvc.Server) {
	t.Helper()
	for _, rule := range []string{
		"ACL SETUSER ada on >" + password + " ~* &* +@all -acl -config -client|list",
		"ACL SETUSER admin on >adm1n ~* +@all",
		"ACL SETUSER default off",
	} {
		redis(t, server, strings.Fields(rule)...)
	}
}

// onlyAda checks that all clients of a server but the test's own are ada, and that the server has
// refused no command.
func onlyAda(t *testing.T, server *testsvc.Server, how string, least int) {
	t.Helper()
	clients := 0
	for line := range strings.Lines(asAdmin(t, server, "CLIENT", "LIST")) {
		switch {
		case strings.Contains(line, "user=admin"), strings.Contains(line, "cmd=NULL"): // the latter have sent no command yet
		case strings.Contains(line, "user=ada"):
			clients++
		default:
			t.Errorf("%s: the client %s", how, line)
		}
	}
	if clients < least {
		t.Errorf("%s: %d clients are ada, want %d at least", how, clients, least)
	}
	if refused := asAdmin(t, server, "ACL", "LOG"); refused != "" {
		t.Errorf("%s: the server has refused %s", how, refused)
	}
}

// TestThreeLevels checks that nested runs are the same user of the store, and that the password
// stays hidden, with Redis and with a quorum.
func TestThreeLevels(t *testing.T) {
	program, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	server := testsvc.Redis(t)
	hasAda(t, server)
	url := "redis://ada:" + password + "@" + server.Addr
	threeLevels(t, program, url, func(how string) { onlyAda(t, server, how, 4) })

	servers, quorum := trio(t, "")
	quorum = strings.Replace(quorum, "://", "://ada:"+password+"@", 1)
	for _, s := range servers {
		hasAda(t, s)
	}
	wantRun(t, 1, quorum, "doctor", "--admit") // it warns that there is no persistence
	for _, s := range servers {
		asAdmin(t, s, "ACL", "LOG", "RESET") // doctor has requested more than ada may see
	}
	threeLevels(t, program, quorum, func(how string) {
		for _, s := range servers {
			onlyAda(t, s, how, 4)
		}
	})
}

// TestErrorsHidePassword checks that an error does not contain the password, and is one line that
// explains the problem.
func TestErrorsHidePassword(t *testing.T) {
	server := testsvc.Redis(t)
	hasAda(t, server)
	addr := server.Addr
	for _, c := range []struct {
		status int
		url    string
		says   string
	}{
		{69, "redis://ada:" + password + "@127.0.0.1:1", "the store redis://127.0.0.1:1 ($HOLDFAST_STORE) cannot be reached: connection refused; is the server up"},
		{69, "redis://ada:" + password + "@no-host.invalid", "is the host's name right?"},
		{77, "redis://ada:wrong" + password + "@" + addr, "the store redis://" + addr + " ($HOLDFAST_STORE) refuses us: check the user name and the password"},
		{77, "redis://" + addr + "?client_name=" + "x", "refuses us: check the user name and the password"},
		{78, "redis://ada:" + password + "@" + addr + "/9999", "/9999 ($HOLDFAST_STORE): the server has no database of this number"},
		{78, "redis://ada:" + password + "/@" + addr, "the store redis: ($HOLDFAST_STORE): "},
		{78, "http://ada:" + password + "@locks.example", "write the token behind a colon"},
		{69, "http://:" + password + "@127.0.0.1:1", "127.0.0.1:1: connection refused; is the server up"},
		{78, "redsi://ada:" + password + "@" + addr, `unknown scheme "redsi"`},
		{78, password, "it is not a URL: use sqlite:"},
		{69, "redis+sentinel://ada:" + password + "@127.0.0.1:1/m?sentinel_user=u&sentinel_password=" + password, "127.0.0.1:1: connection refused; is the server up"},
		{69, "redis+cluster://ada:" + password + "@127.0.0.1:1,127.0.0.1:2", "127.0.0.1:"},
		{69, "quorum+redis://ada:" + password + "@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", ": connection refused; are the servers up? holdfast doctor tells of each"},
		{78, "sqlite:///no/such/directory/locks.db", "there is no directory /no"},
	} {
		for _, args := range [][]string{{"run", "-n", "deploy", "--", "true"}, {"show", "deploy", "--json"}} {
			status, stdout, stderr := run(t, c.url, args...)
			if status != c.status || !strings.HasPrefix(stderr, "holdfast: "+args[0]+` "deploy": `) || strings.Count(stderr, "\n") != 1 ||
				!strings.Contains(stderr, c.says) || strings.Contains(stdout+stderr, password) {
				t.Errorf("%s of %s: status %d, want %d and %q\n%s%s", args[0], c.url, status, c.status, c.says, stdout, stderr)
			}
			if isJSON := strings.Contains(stdout, fmt.Sprintf("\"status\": %d", status)); isJSON != (args[0] == "show") {
				t.Errorf("%s of %s: %q", args[0], c.url, stdout)
			}
		}
	}
}

// asAdmin sends a command as the user admin to a server that hasAda has prepared.
func asAdmin(t *testing.T, server *testsvc.Server, words ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := testsvc.Ask(conn, "AUTH", "admin", "adm1n"); err != nil {
		t.Fatal(err)
	}
	reply, err := testsvc.Ask(conn, words...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}
