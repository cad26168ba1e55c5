package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// repository is the tree that the tests try to release: its last commit.
const repository = "../.."

var only = flag.String("platforms", "", "try these platforms only, such as linux/amd64: for a look at a change")

// A trial is a release of the same commit in two directories.
type trial struct {
	first, second []file // what dist has, by the script and in this process
	dist          string // of the second, with a signature
	release       *release
	key           string
}

var (
	trialOnce sync.Once
	theTrial  trial
	trialErr  error
	scratch   string
)

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "holdfast-release-test-")
	if err != nil {
		panic(err)
	}
	scratch = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		code = 1
	}
	os.Exit(code)
}

// tried makes the trial, once for all tests.
func tried(t *testing.T) *trial {
	t.Helper()
	trialOnce.Do(func() { theTrial, trialErr = makeTrial() })
	if trialErr != nil {
		t.Fatal(trialErr)
	}
	return &theTrial
}

func makeTrial() (made trial, err error) {
	a, b := filepath.Join(scratch, "a"), filepath.Join(scratch, "another", "b")
	for _, dir := range []string{a, b} {
		if out, err := exec.Command("git", "clone", "--quiet", repository, dir).CombinedOutput(); err != nil {
			return made, errors.New(string(out))
		}
	}
	args := []string{"--dry-run"}
	made.key = filepath.Join(scratch, "key")
	made.release = &release{tree: b, dry: true, key: made.key, work: filepath.Join(scratch, "work"), only: platforms}
	if *only != "" {
		args = append(args, "--platforms", *only)
		made.release.only = nil
		if err := made.release.choose(*only); err != nil {
			return made, err
		}
	}
	script := exec.Command(filepath.Join(a, "scripts", "release.sh"), args...)
	script.Stdout, script.Stderr = os.Stdout, os.Stderr
	if err := script.Run(); err != nil {
		return made, err
	}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a test", "-f", made.key).CombinedOutput(); err != nil {
		return made, errors.New(string(out))
	}
	if err := errors.Join(os.Mkdir(made.release.work, 0o700), made.release.run()); err != nil {
		return made, err
	}
	made.dist = filepath.Join(b, "dist", made.release.version)
	if made.first, err = readAll(filepath.Join(a, "dist", made.release.version)); err == nil {
		made.second, err = readAll(made.dist)
	}
	return made, err
}

// TestEqual: two trials in two directories make the same files, byte for byte; only one
// has a key.
func TestEqual(t *testing.T) {
	tr := tried(t)
	sums := map[string][]byte{}
	for _, f := range tr.second {
		sums[f.name] = f.data
	}
	if sums[sumsName+".sig"] == nil || len(tr.second) != len(tr.first)+1 {
		t.Fatalf("%d files, and %d with a signature", len(tr.first), len(tr.second))
	}
	delete(sums, sumsName+".sig")
	for _, f := range tr.first {
		if !bytes.Equal(sums[f.name], f.data) {
			t.Errorf("%s is not the same: %d bytes and %d", f.name, len(f.data), len(sums[f.name]))
		}
	}
	if *only != "" {
		return
	}
	want := []string{
		"RELEASE_NOTES.md", sumsName, "holdfast.json", "holdfast.rb", "holdfast_VERSION_oci.tar",
		"holdfast-VERSION-1.x86_64.rpm", "holdfast-VERSION-1.aarch64.rpm", "holdfast_VERSION-1_amd64.deb", "holdfast_VERSION-1_arm64.deb",
	}
	for _, p := range platforms {
		ending := ".tar.gz"
		if p.os == "windows" {
			ending = ".zip"
		}
		want = append(want, "holdfast_VERSION_"+p.String()+ending, "holdfast_VERSION_"+p.String()+".cdx.json")
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "VERSION", tr.release.bare())
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(sums)); !slices.Equal(got, want) {
		t.Errorf("the files are %q\nwant %q", got, want)
	}
}

// here is the platform whose program runs on this machine.
func here() platform { return platform{runtime.GOOS, runtime.GOARCH} }

// program unpacks the program for this machine from its archive, and returns its path.
func (tr *trial) program(t *testing.T) string {
	t.Helper()
	if !slices.Contains(tr.release.only, here()) {
		t.Fatalf("the trial has no %s", here())
	}
	top := "holdfast_" + tr.release.bare() + "_" + here().String()
	for _, f := range unpacked(t, tr.file(t, top+".tar.gz")) {
		if f.name == top+"/holdfast" {
			path := filepath.Join(t.TempDir(), "holdfast")
			if err := os.WriteFile(path, f.data, 0o755); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatal("the archive has no program")
	return ""
}

// file returns one of the trial's files.
func (tr *trial) file(t *testing.T, name string) []byte {
	t.Helper()
	for _, f := range tr.second {
		if f.name == name {
			return f.data
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// unpacked reads a tar, compressed or not. All of it belongs to root or to the user of
// the image.
func unpacked(t *testing.T, data []byte) (all []file) {
	t.Helper()
	var r io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 && h.Name != imageHome || h.Uname != "" {
			t.Errorf("%s belongs to %d %q", h.Name, h.Uid, h.Uname)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file{h.Name, h.FileInfo().Mode(), text})
	}
}

// asRoot returns a command that has the rights of root, in namespaces of its own.
func asRoot(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Fatal("the packages are tried on Linux: run make release there")
	}
	flags := []string{"--mount", "--pid", "--fork", "--kill-child"}
	if os.Geteuid() != 0 {
		flags = append(flags, "--map-root-user")
	}
	return exec.Command("unshare", append(append(flags, "sh", "-euc", script, "sh"), args...)...)
}

// output runs a command, which must succeed.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd.Args[0], err, out)
	}
	return string(out)
}
