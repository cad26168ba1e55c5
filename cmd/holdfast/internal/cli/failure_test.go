package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/stores"
	"github.com/holdfast-locks/holdfast/wire"
)

// fails runs the program with a store that is not there. The program must print one object, whose
// message is on standard error, too.
func fails(t *testing.T, status int, code string, args ...string) {
	t.Helper()
	env := map[string]string{"HOLDFAST_STORE": "redis://ada:s3cret@127.0.0.1:1"}
	var stdout, stderr bytes.Buffer
	got := Main(args, func(key string) string { return env[key] }, t.TempDir(), &stdout, &stderr)
	d := json.NewDecoder(&stdout)
	d.DisallowUnknownFields()
	var f wire.Failure
	if err := d.Decode(&f); err != nil || got != status || f.Status != status || f.Error != code || d.More() {
		t.Errorf("%q: status %d, want %d: %+v, %v", args, got, status, f, err)
	}
	if text := "holdfast: " + f.Message + "\n"; stderr.String() != text || strings.Contains(text, "s3cret") {
		t.Errorf("%q: the message is %q, and on standard error %q", args, f.Message, stderr.String())
	}
}

// TestOthersTextIsPlain checks that control characters in the texts of another client do not reach
// the terminal, neither in a message nor in JSON.
func TestOthersTextIsPlain(t *testing.T) {
	dir := t.TempDir()
	store := "sqlite://" + filepath.Join(dir, "locks.db")
	engine, err := stores.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	const hostile = "\x1b]0;x\a\u009b31m\u202e\x7f\r\nholdfast: acquired"
	req := driver.AcquireRequest{Name: "job", LeaseID: lockinfo.NewLeaseID(), TTL: time.Hour, Holder: lockinfo.Holder{
		Host: hostile, User: hostile, Program: hostile, Label: hostile, Reason: hostile, Labels: map[string]string{hostile: hostile},
	}}
	if reply, err := engine.Acquire(t.Context(), req); err != nil || reply.Outcome != driver.Granted {
		t.Fatal(reply, err)
	}
	for _, command := range []string{"run -n job -- true", "acquire -n job", "hold -n job --for 1m --reason x", "ls", "ls --json", "show job", "show job --json"} {
		env := map[string]string{"HOLDFAST_STORE": store}
		var stdout, stderr bytes.Buffer
		Main(strings.Fields(command), func(key string) string { return env[key] }, dir, &stdout, &stderr)
		text := strings.ReplaceAll(stdout.String()+stderr.String(), "\n", "")
		if !strings.Contains(text, "x1b") && !strings.Contains(text, "u001b") || strings.ContainsFunc(strings.ReplaceAll(text, "\t", ""), driver.IsControl) {
			t.Errorf("%s prints %q", command, text)
		}
		if strings.Contains(stderr.String(), "\nholdfast: acquired") {
			t.Errorf("%s prints a line that another client has made: %s", command, &stderr)
		}
	}
}

// jsonCommands returns the words of each command that has --json.
func jsonCommands(cmd *cobra.Command, words ...string) (all [][]string) {
	if cmd.Flags().Lookup("json") != nil {
		all = append(all, words)
	}
	for _, sub := range cmd.Commands() {
		all = append(all, jsonCommands(sub, append(slices.Clone(words), sub.Name())...)...)
	}
	return all
}

// TestJSONOnFailure checks that commands with --json print JSON when they fail: all of them if
// their arguments are wrong, and many if their store is not there.
func TestJSONOnFailure(t *testing.T) {
	commands := jsonCommands(Tree())
	if len(commands) < 10 {
		t.Errorf("only %q have --json", commands)
	}
	for _, words := range commands {
		fails(t, 64, "invalid", append(words, "--bogus", "--json")...)
		fails(t, 64, "invalid", append(words, "--json", "--bogus")...)
	}
	for _, command := range []string{
		"show job", "check job", "ls", "break job --reason why", "wait job", "doctor", "bench", "acquire -n job",
		"once status job", "once forget job", "once list", "token issue", "token prune",
	} {
		fails(t, 69, "store_unavailable", append(strings.Fields(command), "--json")...)
	}
	fails(t, 64, "invalid", "show", "--json")
	fails(t, 64, "invalid", "show", "", "--json")
	fails(t, 78, "invalid", "ls", "--json", "--store", "bogus://h")
	fails(t, 78, "invalid", "ls", "--json", "--store-file", "/no/such/file")
	fails(t, 64, "invalid", "ls", "--json", "--store", "redis://h", "--store-file", "/f")
}
