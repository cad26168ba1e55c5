package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A house is a machine of its own, for one user.
type house struct {
	t    *testing.T
	root string
	env  map[string]string
}

func newHouse(t *testing.T) house {
	t.Helper()
	root := t.TempDir()
	return house{t, root, map[string]string{"HOME": filepath.Join(root, "home", "ada")}}
}

// file writes a file below the root and returns its path.
func (h house) file(path, text string, mode fs.FileMode) string {
	h.t.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		h.t.Fatal(err)
	}
	return path
}

func (h house) asked(url, file string) Asked {
	return Asked{Store: url, File: file, Getenv: func(key string) string { return h.env[key] }, Root: h.root}
}

func (h house) resolve(url, file string) (Choice, error) { return h.asked(url, file).Resolve() }

// wants checks which store is chosen, and what names it.
func (h house) wants(url, source string) Choice {
	h.t.Helper()
	c, err := h.resolve("", "")
	if err != nil || c.URL != url || c.Source != source {
		h.t.Errorf("%q by %q (%v), want %q by %q", c.URL, c.Source, err, url, source)
	}
	return c
}

// fails checks that there is no store, for a reason and with a text.
func (h house) fails(class error, text string) {
	h.t.Helper()
	c, err := h.resolve("", "")
	if !errors.Is(err, class) || !strings.Contains(err.Error(), text) {
		h.t.Errorf("%+v, %v: want %v with %q", c, err, class, text)
	}
}

const userConf, ownStore = "home/ada/.config/holdfast.conf", "/home/ada/.local/state/holdfast/locks.db"

// TestOrder adds one source after the other, from the last of the order to the first. Each takes
// precedence over those before.
func TestOrder(t *testing.T) {
	h := newHouse(t)
	own := h.wants("sqlite://"+h.root+ownStore, "your own file")
	if own.Dir != filepath.Dir(h.root+ownStore) {
		t.Errorf("%q is made", own.Dir)
	}
	h.env["XDG_STATE_HOME"] = h.root + "/state"
	h.wants("sqlite://"+h.root+"/state/holdfast/locks.db", "your own file")
	h.env["XDG_STATE_HOME"] = "relative"
	h.wants("sqlite://"+h.root+ownStore, "your own file")

	system := h.file(systemStore, "", 0o600)
	if c := h.wants("sqlite://"+system, "the system store"); !c.System || c.Dir != "" {
		t.Errorf("%+v", c)
	}
	etc := h.file(systemConfig, "# of the house\n\nstore = redis://house:1/2\nttl=40\n", 0o644)
	if c := h.wants("redis://house:1/2", etc+", line 3"); c.TTL != 40*time.Second || c.System {
		t.Errorf("%+v", c)
	}
	conf := h.file(userConf, " ttl = 50s \n", 0o644)
	if c := h.wants("redis://house:1/2", etc+", line 3"); c.TTL != 50*time.Second {
		t.Errorf("ttl %s, want the user's", c.TTL)
	}
	h.file(userConf, "store = redis://mine\nprefix = a b:\n", 0o644)
	h.wants("redis://mine?prefix=a+b%3A", conf+", line 1")
	h.file(userConf, "store=redis://mine?client_name=x\nprefix=a\n", 0o644)
	h.wants("redis://mine?client_name=x&prefix=a", conf+", line 1")
	h.env["XDG_CONFIG_HOME"] = h.root + "/cfg"
	h.wants("redis://house:1/2", etc+", line 3")
	h.env["XDG_CONFIG_HOME"] = "relative"
	h.wants("redis://mine?client_name=x&prefix=a", conf+", line 1")

	named := h.file("run/store", "\n redis://:pw@file \n\n", 0o600)
	h.env["HOLDFAST_STORE_FILE"] = named
	h.wants("redis://:pw@file", "$HOLDFAST_STORE_FILE "+named)
	h.fails2(h.resolve("redis://flag", named))
	h.env["HOLDFAST_STORE"] = "redis://variable"
	h.fails2(h.resolve("", ""))
	if c, err := h.resolve("", named); err != nil || c.URL != "redis://:pw@file" || !c.ByFlag || c.TTL != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	h.env["HOLDFAST_STORE_FILE"] = ""
	h.wants("redis://variable", "$HOLDFAST_STORE")
	if c, err := h.resolve("redis://flag", ""); err != nil || c.URL != "redis://flag" || !c.ByFlag || c.Source != "--store" {
		t.Errorf("%+v, %v", c, err)
	}
}

// fails2 checks that a pair of sources is refused.
func (h house) fails2(c Choice, err error) {
	h.t.Helper()
	if !errors.Is(err, ErrBoth) {
		h.t.Errorf("%+v, %v: want ErrBoth", c, err)
	}
}

// TestHistoryIsOneSwitch checks that a line of a configuration turns history on in the store that
// the files name, or in a file of the host, but not in a store that a flag or a variable names.
func TestHistoryIsOneSwitch(t *testing.T) {
	h := newHouse(t)
	h.file(systemConfig, "history = 1\n", 0o644)
	h.wants("sqlite://"+h.root+ownStore+"?history=1", "your own file")
	system := h.file(systemStore, "", 0o600)
	if c := h.wants("sqlite://"+system+"?history=1", "the system store"); !c.System {
		t.Error("it does not count as the system store")
	}
	for file, want := range map[string]string{
		"store = redis://a?tls_ca=x\nprefix = p\nhistory = 1": "redis://a?tls_ca=x&prefix=p&history=1",
		"store = redis://a?history=0\nhistory = 1":            "redis://a?history=0",
		"store = http://h:7420\nhistory = 1":                  "http://h:7420",
		"store = quorum+redis://a,b,c\nhistory = 1":           "quorum+redis://a,b,c",
		"store = redis://a\nhistory = 0":                      "redis://a",
		"store = redis://a":                                   "redis://a", // no other file is read then
	} {
		h.wants(want, h.file(userConf, file, 0o644)+", line 1")
	}
	h.env["HOLDFAST_STORE"] = "redis://variable"
	h.wants("redis://variable", "$HOLDFAST_STORE")
	h.env["HOLDFAST_STORE"] = ""
	h.file(userConf, "history = perhaps", 0o644)
	h.fails(driver.ErrInvalid, "line 1: history: want 1 or 0")
}

// TestNeverTheNext checks that a source that cannot be used is an error, even if the next source
// would do: two processes with different stores would both get a lock.
func TestNeverTheNext(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(h house)
		class error
		text  string
	}{
		"no such file":    {func(h house) { h.env["HOLDFAST_STORE_FILE"] = h.root + "/none" }, driver.ErrInvalid, "no such file"},
		"an empty file":   {func(h house) { h.env["HOLDFAST_STORE_FILE"] = h.file("f", " \n", 0o600) }, driver.ErrInvalid, "want one line"},
		"two lines":       {func(h house) { h.env["HOLDFAST_STORE_FILE"] = h.file("f", "redis://a\nredis://b", 0o600) }, driver.ErrInvalid, "want one line"},
		"a directory":     {func(h house) { h.env["HOLDFAST_STORE_FILE"] = h.root }, driver.ErrInvalid, "not a regular file"},
		"a large file":    {func(h house) { h.file(userConf, strings.Repeat("#", maxFile+1), 0o600) }, driver.ErrInvalid, "has more than"},
		"a link to none":  {func(h house) { h.link("nowhere", userConf) }, driver.ErrInvalid, "is a link to nothing"},
		"unknown key":     {func(h house) { h.file(userConf, "\n#\nstroe = redis://a", 0o600) }, driver.ErrInvalid, `line 3: unknown key "stroe": want store, prefix, ttl or history`},
		"twice":           {func(h house) { h.file(userConf, "ttl=1s\nttl=1s\n", 0o600) }, driver.ErrInvalid, "line 2: ttl is there a second time, after line 1"},
		"no =":            {func(h house) { h.file(userConf, "store redis://:s3cret@h", 0o600) }, driver.ErrInvalid, "line 1: want key = value"},
		"a line of a URL": {func(h house) { h.file(userConf, "redis://:s3cret@h/?a=b", 0o600) }, driver.ErrInvalid, "line 1: unknown key: want"},
		"no value":        {func(h house) { h.file(userConf, "store =", 0o600) }, driver.ErrInvalid, "line 1: store has no value"},
		"no duration":     {func(h house) { h.file(userConf, "ttl = soon", 0o600) }, driver.ErrInvalid, "line 1: ttl: want a duration"},
		"a short ttl":     {func(h house) { h.file(userConf, "ttl = 99ms", 0o600) }, driver.ErrInvalid, "from 100ms to 720h"},
		"prefix alone":    {func(h house) { h.file(userConf, "prefix = a", 0o600) }, driver.ErrInvalid, "line 1: prefix belongs to a store in the same file"},
		"two prefixes":    {func(h house) { h.file(userConf, "prefix = a\nstore = redis://h?prefix=b", 0o600) }, driver.ErrInvalid, "has a prefix already"},
		"an address":      {func(h house) { h.env["HOLDFAST_STORE"] = "localhost:6379" }, driver.ErrInvalid, "$HOLDFAST_STORE: localhost:6379 is not a URL: did you mean redis://localhost:6379?"},
		"a server":        {func(h house) { h.env["HOLDFAST_STORE"] = "127.0.0.1:7420" }, driver.ErrInvalid, "did you mean http://127.0.0.1:7420?"},
		"a path":          {func(h house) { h.env["HOLDFAST_STORE"] = "/var/lib/locks.db" }, driver.ErrInvalid, "did you mean sqlite:///var/lib/locks.db?"},
		"a file":          {func(h house) { h.env["HOLDFAST_STORE"] = "locks.db" }, driver.ErrInvalid, "/locks.db?"},
		"of the house":    {func(h house) { h.file(systemConfig, "oops", 0o644) }, driver.ErrInvalid, "/etc/holdfast.conf, line 1"},
	} {
		h := newHouse(t)
		h.file(systemStore, "", 0o600)
		if what != "of the house" {
			h.file(systemConfig, "store = redis://house", 0o644)
		}
		c.spoil(h)
		h.fails(c.class, c.text)
		if _, err := h.resolve("", ""); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", what, err)
		}
		if choice, err := h.resolve("redis://flag", ""); err != nil || choice.URL != "redis://flag" {
			t.Errorf("%s: with --store: %+v, %v", what, choice, err)
		}
	}
}

func (h house) link(to, path string) {
	h.t.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		h.t.Fatal(err)
	}
}

// TestEnvOfCommands checks that a command under a lock finds the store by the user's environment,
// or by a variable that contains no secret.
func TestEnvOfCommands(t *testing.T) {
	h := newHouse(t)
	file := h.file("store", "redis://:pw@h", 0o600)
	for _, c := range []struct{ url, file, variable, want string }{
		{"redis://h", "", "", "HOLDFAST_STORE=redis://h"},
		{"redis://:pw@h", "", "", ""},
		{"redis://u@h", "", "", ""},
		{"redis+sentinel://h/m?sentinel_password=pw", "", "", ""},
		{"redis://h", "", "redis://mine", ""},
		{"", file, "", "HOLDFAST_STORE_FILE=" + file},
		{"", file, "redis://mine", ""},
		{"", "", "redis://:pw@mine", ""},
		{"", "", "", ""},
	} {
		h.env["HOLDFAST_STORE"] = c.variable
		choice, err := h.resolve(c.url, c.file)
		if got := strings.Join(choice.Env, " "); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	t.Chdir(h.root)
	h.env["HOLDFAST_STORE"] = ""
	if c, err := h.resolve("", "store"); err != nil || len(c.Env) != 1 || !filepath.IsAbs(strings.TrimPrefix(c.Env[0], "HOLDFAST_STORE_FILE=")) {
		t.Errorf("%+v, %v", c, err)
	}
}
