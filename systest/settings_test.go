package systest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/codeblock"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestSettingsInPages checks that a server accepts each Redis setting in the documentation, and
// that a user with the documented rights can do everything that locks need.
func TestSettingsInPages(t *testing.T) {
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	settings, users := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		blocks, _ := codeblock.Find(filepath.Base(file), string(text)) // archtest reports problems
		for _, b := range blocks {
			if b.Kind != "redis" {
				continue
			}
			s := newStore(t)
			for line := range strings.Lines(b.Text) {
				words := strings.Fields(line)
				if len(words) == 0 || words[0] == "#" {
					continue
				}
				call := append([]string{"CONFIG", "SET", words[0]}, strings.Trim(strings.Join(words[1:], " "), `"`))
				if words[0] == "user" {
					call = append([]string{"ACL", "SETUSER"}, words[1:]...)
					users++
				}
				if err := s.plain.Do(t.Context(), s.plain.B().Arbitrary(call...).Build()).Error(); err != nil {
					t.Errorf("%s: %s: %v", b.At(), line, err)
				}
				if settings++; words[0] == "user" {
					worksAs(t, b.At(), s.server, words[1:])
				}
			}
		}
	}
	if settings < 3 || users < 1 {
		t.Errorf("%d settings, %d users: are the pages read?", settings, users)
	}
}

// worksAs does everything that locks need as a user with these rights.
func worksAs(t *testing.T, at string, server *testsvc.Server, rule []string) {
	t.Helper()
	name, password, prefix := rule[0], "", ""
	for _, word := range rule[1:] {
		switch word[0] {
		case '>':
			password = word[1:]
		case '~':
			prefix = strings.TrimSuffix(word[1:], "*")
		}
	}
	engine := openEngine(t, "redis://"+name+":"+password+"@"+server.Addr+"?prefix="+prefix)
	client, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	waiting := make(chan error, 1)
	err = client.Do(t.Context(), "t", nil, func(ctx context.Context, l *holdfast.Lease) error {
		told := make(chan struct{}, 10)
		opts := &holdfast.AcquireOptions{Mode: holdfast.Shared, WholeTTL: true, OnWait: func(holdfast.WaitState) { told <- struct{}{} }}
		go func() {
			waiting <- client.Do(t.Context(), "t", opts, func(context.Context, *holdfast.Lease) error { return nil })
		}()
		<-told
		if _, err := client.Inspect(ctx, "t"); err != nil {
			return err
		}
		return l.Extend(ctx, time.Minute)
	})
	if err != nil {
		t.Errorf("%s: as this user: %v", at, err)
	}
	if err := <-waiting; err != nil {
		t.Errorf("%s: waiting as this user: %v", at, err)
	}
	_, err = client.Once(t.Context(), "once", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil })
	if err != nil {
		t.Errorf("%s: once as this user: %v", at, err)
	}
	for l, err := range client.List(t.Context(), "") {
		if err != nil {
			t.Errorf("%s: list as this user: %v %v", at, l, err)
		}
	}
}
