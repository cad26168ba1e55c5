package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// TestAnyLinux: the program needs no C library and no loader, and no user namespaces: it
// runs where there is only musl, and where the kernel makes none.
func TestAnyLinux(t *testing.T) {
	program := tried(t).program(t)
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 || f.Section(".interp") != nil {
		t.Errorf("it needs %v", libraries)
	}
	root := t.TempDir()
	loader, err := filepath.Glob("/lib/ld-musl-*.so.1")
	if err != nil || len(loader) == 0 {
		t.Fatal("there is no musl: scripts/deps.sh release installs it")
	}
	out := output(t, asRoot(t, `
		mkdir -p "$1/bin" "$1/lib" "$1/proc" "$1/dev" "$1/tmp"
		mount -t proc proc "$1/proc"
		mount --rbind /dev "$1/dev"
		cp "$2" "$1/bin/holdfast"; cp -L "$3" "$1/lib/"
		export HOME=/tmp
		chroot "$1" /bin/holdfast run job -- /bin/holdfast run other -- /bin/holdfast version
		chroot "$1" /bin/holdfast show job
	`, root, program, loader[0]))
	if !strings.Contains(out, "holdfast v") {
		t.Errorf("in a root with musl alone: %s", out)
	}
	// In a namespace of users whose limit is 0, as on a kernel without them.
	out = output(t, exec.Command("unshare", "--user", "--map-root-user", "sh", "-euc", `
		echo 0 >/proc/sys/user/max_user_namespaces
		if unshare --user true 2>/dev/null; then echo "there still are namespaces"; fi
		HOME=$2 "$1" run job -- "$1" check -q
		HOME=$2 "$1" run -n job -- echo mine
	`, "sh", program, t.TempDir()))
	if out != "mine\n" {
		t.Errorf("without namespaces of users: %s", out)
	}
}

// TestLintian: Debian's own checker finds no error.
func TestLintian(t *testing.T) {
	tr := tried(t)
	for _, arch := range []string{"amd64", "arm64"} {
		if !slices.Contains(tr.release.only, platform{"linux", arch}) {
			continue
		}
		deb := filepath.Join(tr.dist, "holdfast_"+tr.release.debVersion()+"_"+arch+".deb")
		out, err := exec.Command("lintian", "--allow-root", "--fail-on", "error", deb).CombinedOutput()
		if err != nil {
			t.Errorf("lintian: %v\n%s", err, out)
		}
		if arch == "amd64" { // it can fail
			spoiled := filepath.Join(t.TempDir(), "tree")
			output(t, exec.Command("dpkg-deb", "--raw-extract", deb, spoiled))
			if err := os.Remove(filepath.Join(spoiled, "usr/share/lintian/overrides/holdfast")); err != nil {
				t.Fatal(err)
			}
			output(t, exec.Command("dpkg-deb", "--root-owner-group", "-Znone", "--build", spoiled, spoiled+".deb"))
			if out, err := exec.Command("lintian", "--allow-root", "--fail-on", "error", spoiled+".deb").CombinedOutput(); err == nil {
				t.Errorf("lintian finds no error in a package without overrides: %s", out)
			}
		}
	}
}

// cleanRoot has a script work in a root like this machine's, of which $1/changed has what
// differs afterwards.
const cleanRoot = `
	mount -t tmpfs tmpfs "$1"
	mkdir "$1/changed" "$1/work" "$1/root"
	mount -t overlay overlay -o "lowerdir=/,upperdir=$1/changed,workdir=$1/work" "$1/root"
	mount --rbind /proc "$1/root/proc"
	mount --rbind /dev "$1/root/dev"
	mount -t tmpfs tmpfs "$1/root/run"
	mkdir "$1/root/packages"; mount --bind "$2" "$1/root/packages"
	export HOME=/root XDG_RUNTIME_DIR=/run DEBIAN_FRONTEND=noninteractive
`

// left prints what the package has left in the root, apart from the notes of programs
// about packages and accounts.
const left = `
	umount "$1/root/packages"; rmdir "$1/root/packages"
	cd "$1/changed"
	find . ! -type d | grep -vE '^\./(var/lib/(dpkg|rpm)|var/log|var/cache|etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$|etc/\.pwd\.lock|usr/lib/sysimage)' | sort
	find . -name '*holdfast*' -type d | sort
`

// TestDeb: the package is installed, upgraded and removed in a clean root; the system
// store, made meanwhile, is all that it leaves.
func TestDeb(t *testing.T) {
	tr := tried(t)
	packages := t.TempDir()
	deb := filepath.Join(tr.dist, "holdfast_"+tr.release.debVersion()+"_"+here().arch+".deb")
	old := filepath.Join(t.TempDir(), "old")
	output(t, exec.Command("dpkg-deb", "--raw-extract", deb, old))
	control, err := os.ReadFile(filepath.Join(old, "DEBIAN", "control"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(old, "DEBIAN", "control"), strings.Replace(string(control), "Version: "+tr.release.debVersion(), "Version: 0.0.1~old", 1))
	put(t, filepath.Join(old, "usr/share/doc/holdfast/gone"), "in the old version only")
	output(t, exec.Command("dpkg-deb", "--root-owner-group", "-Znone", "--build", old, filepath.Join(packages, "old.deb")))
	output(t, exec.Command("cp", deb, filepath.Join(packages, "new.deb")))
	out := output(t, asRoot(t, cleanRoot+`
		inside() { chroot "$root" "$@"; }
		root=$1/root
		inside dpkg --install /packages/old.deb >/dev/null 2>&1
		inside getent group holdfast >/dev/null && echo "has the group"
		inside holdfast doctor --make-system-store >/dev/null 2>&1 || [ $? = 1 ] # a warning
		inside holdfast run nightly -- echo "runs in the system store"
		inside dpkg --install /packages/new.deb >/dev/null
		[ -e "$root/usr/share/doc/holdfast/gone" ] || echo "is upgraded"
		inside holdfast run nightly -- echo "still runs"
		inside stat -c '%a %U %G %n' /var/lib/holdfast /var/lib/holdfast/locks.db
		[ -z "$(inside dpkg --verify holdfast)" ] && echo "is whole"
		inside dpkg --purge holdfast >/dev/null
		echo "left:"
	`+left, t.TempDir(), packages))
	want := regexp.MustCompile(`(?s)^has the group
runs in the system store
is upgraded
still runs
3770 root holdfast /var/lib/holdfast
660 root holdfast /var/lib/holdfast/locks.db
is whole
left:
(\./var/lib/holdfast/\S+
)+\./var/lib/holdfast
$`)
	if !want.MatchString(out) {
		t.Errorf("it says\n%s", out)
	}
}

// TestRPM: the package of RPM has the files of the other one, and is installed and removed
// in a clean root.
func TestRPM(t *testing.T) {
	tr := tried(t)
	rpm := filepath.Join(tr.dist, "holdfast-"+tr.release.bare()+"-1."+rpmArch[here().arch]+".rpm")
	packages := t.TempDir()
	output(t, exec.Command("cp", rpm, filepath.Join(packages, "new.rpm")))
	out := output(t, asRoot(t, cleanRoot+`
		root=$1/root
		inside() { chroot "$root" "$@"; }
		rpm() { inside rpm --dbpath /var/lib/rpm "$@"; }
		rpm --initdb
		rpm --install --nodeps /packages/new.rpm 2>/dev/null
		inside sh -c 'HOME=/tmp/home holdfast run nightly -- echo mine; rm -r /tmp/home'
		rpm --verify --nodeps holdfast && echo "is whole"
		rpm --erase holdfast 2>/dev/null
		echo "left:"
	`+left, t.TempDir(), packages))
	if want := "mine\nis whole\nleft:\n"; !strings.HasSuffix(out, want) {
		t.Errorf("it says\n%s\nwant %s", out, want)
	}
	names := output(t, exec.Command("rpm", "-qpl", rpm))
	deb := output(t, exec.Command("dpkg-deb", "--contents", filepath.Join(tr.dist, "holdfast_"+tr.release.debVersion()+"_"+here().arch+".deb")))
	for _, m := range regexp.MustCompile(`(?m) \./(usr/(?:bin|lib|share/man)/\S+[^/\s])$`).FindAllStringSubmatch(deb, -1) {
		if !strings.Contains(names, "/"+m[1]+"\n") {
			t.Errorf("it has no %s", m[1])
		}
	}
}

// TestImage: the image is small, one layer for each processor, and what its configuration
// says; its program serves from the unpacked root, and its health check passes.
func TestImage(t *testing.T) {
	tr := tried(t)
	data := tr.file(t, "holdfast_"+tr.release.bare()+"_oci.tar")
	t.Logf("%.1f MiB, all processors", float64(len(data))/(1<<20))
	dir := t.TempDir()
	for _, f := range unpacked(t, data) {
		put(t, filepath.Join(dir, f.name), string(f.data))
	}
	for _, p := range tr.release.only {
		if p.os != "linux" {
			continue
		}
		img := imageIn(t, dir, p)
		layers, err := img.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%s has %d layers, %v", p, len(layers), err)
		}
		if size, err := layers[0].Size(); err != nil || size > 25<<20 {
			t.Errorf("%s has %d bytes, want 25 MiB at most: %v", p, size, err)
		}
		config, err := img.ConfigFile()
		if err != nil || config.Config.User != "65532:65532" || config.Architecture != p.arch || config.Config.Labels["org.opencontainers.image.revision"] != tr.release.commit {
			t.Errorf("%s: %+v, %v", p, config, err)
		}
	}
	img := imageIn(t, dir, here())
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	tarball := filepath.Join(t.TempDir(), "root.tar")
	f, err := os.Create(tarball)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFrom(mutate.Extract(img)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	serve := asRoot(t, `
		mount -t tmpfs tmpfs "$1"
		tar -xf "$2" -C "$1"
		root=$1; shift 2
		chroot=$(command -v chroot)
		inside() { exec env -i $CONTAINER_ENV HOLDFAST_STORE="$store" "$chroot" --userspec=65532:65532 "$root" "$@"; }
		mkdir "$root/proc" "$root/dev"; mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"
		head -c 30 "$root/etc/ssl/certs/ca-certificates.crt"; echo
		store=sqlite:///tmp/locks.db
		inside /usr/bin/holdfast serve --listen 127.0.0.1:0 >"$root/url" 2>"$root/log" &
		server=$!
		until grep -q http "$root/url"; do kill -0 $server || { cat "$root/log"; exit 1; }; sleep .1; done
		store=$(grep -o 'http://[0-9.:]*' "$root/url")
		status=0
		(inside "$@") >"$root/doctor" || status=$?
		echo "health: $status"
		[ $status = 0 ] || cat "$root/doctor" "$root/log"
		kill $server; wait $server || echo "it ends with $?"
	`, append([]string{t.TempDir(), tarball}, config.Config.Healthcheck.Test[1:]...)...)
	serve.Env = append(os.Environ(), "CONTAINER_ENV="+strings.Join(config.Config.Env, " "))
	if out := output(t, serve); out != "-----BEGIN CERTIFICATE-----\nMI\nhealth: 0\n" {
		t.Errorf("it says\n%s", out)
	}
}

// imageIn returns the image for a platform from a layout.
func imageIn(t *testing.T, dir string, p platform) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("%+v, %v", top, err)
	}
	inner, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	all, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all.Manifests {
		if m.Platform.OS == p.os && m.Platform.Architecture == p.arch {
			img, err := inner.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return img
		}
	}
	t.Fatalf("there is no image for %s", p)
	return nil
}

// TestDockerfile: a container of the Dockerfile runs as one of the image does.
func TestDockerfile(t *testing.T) {
	text, err := packaging.ReadFile("packaging/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "\nFROM scratch\n")
	entry, _ := json.Marshal(imageConfig.Entrypoint)
	check, _ := json.Marshal(imageConfig.Healthcheck.Test[1:])
	spaced := func(list []byte) string { return strings.ReplaceAll(string(list), ",", ", ") }
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.0fs", d.Seconds()) }
	h := imageConfig.Healthcheck
	for _, want := range []string{
		"ENV " + strings.Join(imageConfig.Env, " "),
		"USER " + imageConfig.User,
		"WORKDIR " + imageConfig.WorkingDir,
		"ENTRYPOINT " + spaced(entry),
		"HEALTHCHECK --interval=" + seconds(h.Interval) + " --timeout=" + seconds(h.Timeout) + " --start-period=" + seconds(h.StartPeriod) + " CMD " + spaced(check),
		"COPY --from=build /etc/ssl/certs/ca-certificates.crt /" + authors,
	} {
		if !bytes.Contains([]byte(last), []byte(want+"\n")) {
			t.Errorf("packaging/Dockerfile lacks %s", want)
		}
	}
}
