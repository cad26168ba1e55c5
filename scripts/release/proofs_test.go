package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSBOM: the list of what is in a program has all modules that are linked into it, with
// their sums and licences, and a list that is spoiled is not valid.
func TestSBOM(t *testing.T) {
	tr := tried(t)
	text := tr.file(t, "holdfast_"+tr.release.bare()+"_"+here().String()+".cdx.json")
	if err := validSBOM(text); err != nil {
		t.Error(err)
	}
	spoiled := bytes.Replace(text, []byte(`"type": "library"`), []byte(`"type": "book"`), 1)
	if err := validSBOM(spoiled); err == nil {
		t.Error("a spoiled list is valid")
	}
	var list struct {
		Components []struct {
			Name, Version string
			Hashes        []any
			Licenses      []any
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(tr.program(t))
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]string{"std": info.GoVersion}
	for _, dep := range info.Deps {
		linked[dep.Path] = dep.Version
	}
	for _, c := range list.Components {
		if linked[c.Name] != c.Version || len(c.Licenses) == 0 || len(c.Hashes) == 0 && c.Name != "std" {
			t.Errorf("%+v, want %s", c, linked[c.Name])
		}
		delete(linked, c.Name)
	}
	if len(linked) > 0 {
		t.Errorf("it lacks %v", linked)
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && s.Value != tr.release.commit || s.Key == "vcs.modified" && s.Value != "false" {
			t.Errorf("the program has %s %s, and the commit is %s", s.Key, s.Value, tr.release.commit)
		}
	}
	if info.Main.Version != tr.release.version {
		t.Errorf("the program has the version %s", info.Main.Version)
	}
}

// TestThirdParty: the page names what the program links.
func TestThirdParty(t *testing.T) {
	r := &release{tree: repository}
	if err := r.checkThirdParty(); err != nil {
		t.Error(err)
	}
	licences, err := readThirdParty(repository)
	if err != nil || len(licences) < 25 || licences["preact 11.2.0"] != "MIT" {
		t.Errorf("%d licences, %v", len(licences), err)
	}
	if id, err := licenceOf([]byte("You may use this\non Sundays.")); err == nil {
		t.Errorf("an unknown licence is %s", id)
	}
}

// TestSignature: the sums are signed with the key, for this purpose; and sums that have
// changed are not.
func TestSignature(t *testing.T) {
	tr := tried(t)
	public, err := os.ReadFile(tr.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	signers := filepath.Join(t.TempDir(), "signers")
	put(t, signers, "maintainers "+string(public))
	verify := func(sums []byte, purpose string) error {
		cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "maintainers", "-n", purpose, "-s", filepath.Join(tr.dist, sumsName+".sig"))
		cmd.Stdin = bytes.NewReader(sums)
		return cmd.Run()
	}
	sums := tr.file(t, sumsName)
	if err := verify(sums, signedAs); err != nil {
		t.Errorf("ssh-keygen: %v", err)
	}
	if verify(append(bytes.Clone(sums), ' '), signedAs) == nil || verify(sums, "git") == nil {
		t.Error("a signature of something else is taken")
	}
	check := exec.Command("sha256sum", "--check", "--strict", "--quiet", sumsName)
	check.Dir = tr.dist
	output(t, check)
}

// TestConsumer: a module that requires the version from the proxy, without a replace,
// builds and runs the README's first program, and one on redislock.
func TestConsumer(t *testing.T) {
	tr := tried(t)
	readme, err := os.ReadFile(filepath.Join(tr.release.clone(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module example.org/consumer\n\ngo 1.26.0\n\nrequire (\n\t"+
		ours+" "+tr.release.version+"\n\t"+ours+"/redislock "+tr.release.version+"\n\t"+ours+"/stores "+tr.release.version+"\n)\n")
	server := redisOnSocket(t)
	_, program, found := strings.Cut(string(readme), "```go\n")
	if !found {
		t.Fatal("README.md has no program")
	}
	program, _, _ = strings.Cut(program, "```")
	put(t, filepath.Join(dir, "a", "main.go"), program)
	put(t, filepath.Join(dir, "b", "main.go"), `package main

import (
	"context"
	"log"

	"`+ours+`"
	"`+ours+`/redislock"
)

func main() {
	ctx := context.Background()
	engine, err := redislock.Open(ctx, "redis+unix://`+server+`")
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Do(ctx, "reports/nightly", nil, func(ctx context.Context, lease *holdfast.Lease) error {
		log.Print("alone, with the token ", lease.Token())
		return nil
	})
	log.Print("done: ", err)
}
`)
	for _, name := range []string{"a", "b"} {
		program := filepath.Join(t.TempDir(), name)
		if _, err := tr.release.goCommand(dir, nil, "build", "-o", program, "./"+name); err != nil {
			t.Fatal(err)
		}
		out := output(t, exec.Command(program))
		if !strings.Contains(out, "alone, ") || !strings.Contains(out, "done: <nil>") {
			t.Errorf("%s prints %s", name, out)
		}
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || strings.Contains(string(mod), "replace") {
		t.Errorf("%s, %v", mod, err)
	}
}

// redisOnSocket starts a server of the test's own, and returns the path of its socket.
func redisOnSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis-") // short: the path of a socket has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	var log bytes.Buffer
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	ready, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for chunk := make([]byte, 4096); !bytes.Contains(log.Bytes(), []byte("eady to accept connections")); {
		n, err := ready.Read(chunk)
		log.Write(chunk[:n])
		if err != nil {
			t.Fatalf("redis-server: %v\n%s", err, &log)
		}
	}
	go func() { _, _ = log.ReadFrom(ready) }() // until it is killed
	return socket
}
