package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/wire"
)

// fails runs the program with a store that is not there. It must answer with one
// object, whose message is on standard error too.
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

// TestJSONOnFailure: whoever asks for JSON gets JSON, from each command that has it,
// whether its arguments are wrong or its store is not there.
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
