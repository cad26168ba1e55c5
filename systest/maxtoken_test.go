package systest

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// TestGreatestTokens checks that the four greatest tokens, up to 2^53 - 2, pass unchanged through
// both stores, a fenced resource, JSON, the environment of a command and the command line. No
// greater token is granted. (Package fencetest checks the columns of other databases.)
func TestGreatestTokens(t *testing.T) {
	const each = 4
	binary := buildBinary(t)
	redis := newStore(t)
	guard, err := redisfence.New(redis.engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "locks.db")
	exact := 0
	for url, setLast := range map[string]func(name string, token uint64){
		redis.server.URL: func(name string, token uint64) {
			redis.do(t, "SET", "holdfast:{"+name+"}:fence:"+name, fmt.Sprint(token))
		},
		"sqlite://" + file: func(name string, token uint64) { setLastToken(t, file, name, token) },
	} {
		engine, err := traffic.Open(t.Context(), traffic.Redislock, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Close() })
		client := newClient(t, engine, nil)
		giveBack(t, acquireWith(t, client, "great", nil)) // so that the store knows the name
		for want := driver.MaxToken - each + 1; want <= driver.MaxToken; want++ {
			setLast("great", want-driver.TokenRange)
			lease := acquireWith(t, client, "great", nil)
			shown := shownToken(t, binary, url)
			if err := guard.Advance(t.Context(), "resource", lease); err != nil {
				t.Errorf("the resource refuses %d: %v", want, err)
			}
			mark, err := redis.do(t, "GET", "holdfast:{resource}:mark:resource").ToString()
			if err != nil {
				t.Error(err)
			}
			giveBack(t, lease)
			setLast("great", want-driver.TokenRange)
			told := toldToken(t, binary, url)
			if lease.Token() == want && shown == fmt.Sprint(want) && told == fmt.Sprint(want) && strings.Contains(mark, fmt.Sprint(want)) {
				exact++
			} else {
				t.Errorf("%.6s: token %d, shown as %s, told as %s, mark %s; want %d", url, lease.Token(), shown, told, mark, want)
			}
		}
		setLast("great", driver.MaxToken)
		if _, err := client.TryAcquire(t.Context(), "great", nil); err == nil {
			t.Errorf("%.6s: a token above the greatest", url)
		}
		if lock, err := engine.Inspect(t.Context(), "great"); err != nil || len(lock.Holders) > 0 {
			t.Errorf("%.6s: after the refusal the store has %+v, %v", url, lock, err)
		}
		redis.do(t, "FLUSHALL") // deletes the mark
	}
	report.Row(t, "tokens up to 2^53 − 2 through Redis, SQL, JSON, environment, CLI", "bit for bit", "%d of %d exact", exact, 2*each)
}

func giveBack(t *testing.T, l *holdfast.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// buildBinary returns the path of the command holdfast.
func buildBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/holdfast-locks/holdfast/cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// setLastToken sets a name's last token in a SQLite store.
func setLastToken(t *testing.T, file, name string, token uint64) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE token SET last_token = ? WHERE name = ?", int64(token), name); err != nil {
		t.Fatal(err)
	}
}

// run runs the command holdfast and returns its standard output.
func run(t *testing.T, binary string, args ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, args...).Output()
	if err != nil {
		t.Fatalf("holdfast %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// shownToken returns the token of the holder in the output of "show --json",
// where it is both a number and a string.
func shownToken(t *testing.T, binary, url string) string {
	t.Helper()
	var shown struct {
		Holders []struct {
			Token uint64 `json:"fencing_token"`
			Text  string `json:"fencing_token_str"`
		}
	}
	if err := json.Unmarshal(run(t, binary, "show", "--store", url, "--json", "great"), &shown); err != nil || len(shown.Holders) != 1 {
		t.Fatalf("show --json: %+v, %v", shown, err)
	}
	if text := fmt.Sprint(shown.Holders[0].Token); text != shown.Holders[0].Text {
		t.Errorf("show --json has token %s and %s", text, shown.Holders[0].Text)
	}
	return shown.Holders[0].Text
}

// toldToken returns the token in the environment of a command that runs under the lock.
func toldToken(t *testing.T, binary, url string) string {
	t.Helper()
	out := run(t, binary, "run", "--store", url, "great", "--", "sh", "-c", "echo $HOLDFAST_FENCING_TOKEN")
	return strings.TrimSpace(string(out))
}
