package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"
)

//go:embed packaging
var packaging embed.FS

// filled returns a file of packaging with its blanks filled in.
func (r *release) filled(name string, with any) ([]byte, error) {
	t, err := template.ParseFS(packaging, "packaging/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, with)
	return b.Bytes(), err
}

// values are what all templates know.
func (r *release) values(more map[string]any) map[string]any {
	v := map[string]any{"Version": r.bare(), "Tag": r.version, "Date": r.time.Format(time.RFC1123Z)}
	for k, value := range more {
		v[k] = value
	}
	return v
}

// packaged returns the files that both kinds of packages put below /, but for those that
// each has in a place of its own.
func (r *release) packaged(b build, shared []file) (all []file, err error) {
	all = append(all, file{"usr/bin/holdfast", 0o755, b.data})
	for _, unit := range []string{"holdfast.service", "holdfast.socket"} {
		text, err := os.ReadFile(filepath.Join(r.clone(), "examples", "recipes", "systemd", unit))
		if err != nil {
			return nil, err
		}
		for old, now := range map[string]string{"/usr/local/bin": "/usr/bin", "/etc/systemd/system": unitDirectory} {
			text = bytes.ReplaceAll(text, []byte(old), []byte(now))
		}
		all = append(all, file{name: strings.TrimPrefix(unitDirectory, "/") + "/" + unit, data: text})
	}
	for _, kind := range []string{"sysusers", "tmpfiles"} {
		text, err := packaging.ReadFile("packaging/" + kind + ".conf")
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: "usr/lib/" + kind + ".d/holdfast.conf", data: text})
	}
	for _, f := range shared {
		if page, found := strings.CutPrefix(f.name, "man/"); found {
			all = append(all, file{name: "usr/share/man/man1/" + page + ".gz", data: zipped(f.data)})
		}
	}
	return append(all,
		file{name: "usr/share/bash-completion/completions/holdfast", data: named(shared, "completions/holdfast.bash")},
		file{name: "usr/share/fish/vendor_completions.d/holdfast.fish", data: named(shared, "completions/holdfast.fish")},
		file{name: "usr/share/doc/holdfast/README.md.gz", data: zipped(named(shared, "README.md"))},
		file{name: "usr/share/doc/holdfast/THIRD_PARTY.md.gz", data: zipped(named(shared, "THIRD_PARTY.md"))},
		file{name: "usr/share/doc/holdfast/THIRD_PARTY.txt.gz", data: zipped(named(shared, "THIRD_PARTY.txt"))},
	), nil
}

// unitDirectory is where packages have units: also in a Debian whose /lib is a directory
// of its own.
const unitDirectory = "/lib/systemd/system"

// debVersion is the version with the number of its packaging. A tilde
// makes 1.0.0~rc.1 older than 1.0.0.
func (r *release) debVersion() string { return strings.Replace(r.bare(), "-", "~", 1) + "-1" }

// deb writes a package for Debian and its like.
func (r *release) deb(b build, shared []file) error {
	files, err := r.packaged(b, shared)
	if err != nil {
		return err
	}
	size := 0
	for _, f := range files {
		size += (len(f.data) + 1023) / 1024
	}
	values := r.values(map[string]any{"Arch": b.arch, "PackageVersion": r.debVersion(), "Size": size})
	for template, to := range map[string]file{
		"control":   {name: "DEBIAN/control"},
		"postinst":  {name: "DEBIAN/postinst", mode: 0o755},
		"prerm":     {name: "DEBIAN/prerm", mode: 0o755},
		"postrm":    {name: "DEBIAN/postrm", mode: 0o755},
		"copyright": {name: "usr/share/doc/holdfast/copyright"},
		"changelog": {name: "usr/share/doc/holdfast/changelog.Debian.gz"},
		"lintian":   {name: "usr/share/lintian/overrides/holdfast"},
	} {
		if to.data, err = r.filled("deb/"+template, values); err != nil {
			return err
		}
		if strings.HasSuffix(to.name, ".gz") {
			to.data = zipped(to.data)
		}
		files = append(files, to)
	}
	files = append(files,
		file{name: "usr/share/doc/holdfast/changelog.gz", data: zipped(named(shared, "CHANGELOG.md"))},
		file{name: "usr/share/zsh/vendor-completions/_holdfast", data: named(shared, "completions/holdfast.zsh")},
	)
	dir := filepath.Join(r.work, "deb", b.arch)
	if err := writeAll(dir, files, r.time); err != nil {
		return err
	}
	out := filepath.Join(r.files, "holdfast_"+r.debVersion()+"_"+b.arch+".deb")
	return r.tool(r.work, "dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", "-z2", "--build", dir, out)
}

// rpmArch has what Go calls a processor in the words of RPM.
var rpmArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// rpm writes a package for Fedora and its like.
func (r *release) rpm(b build, shared []file) error {
	files, err := r.packaged(b, shared)
	if err != nil {
		return err
	}
	files = append(files,
		file{name: "usr/share/zsh/site-functions/_holdfast", data: named(shared, "completions/holdfast.zsh")},
		file{name: "usr/share/licenses/holdfast/LICENSE", data: named(shared, "LICENSE")},
	)
	for i := range files {
		files[i].name = strings.Replace(files[i].name, "lib/systemd", "usr/lib/systemd", 1)
	}
	top := filepath.Join(r.work, "rpm", b.arch)
	if err := writeAll(filepath.Join(top, "root"), files, r.time); err != nil {
		return err
	}
	var list strings.Builder
	list.WriteString("%dir /usr/share/doc/holdfast\n%dir /usr/share/licenses/holdfast\n")
	for _, f := range files {
		list.WriteString("/" + f.name + "\n")
	}
	spec, err := r.filled("holdfast.spec", r.values(map[string]any{
		"Root": filepath.Join(top, "root"), "Files": strings.TrimSpace(list.String()),
		"RPMVersion": strings.Replace(r.bare(), "-", "~", 1), "Day": r.time.Format("Mon Jan 02 2006"),
	}))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(top, "holdfast.spec"), spec, 0o600); err != nil {
		return err
	}
	if err := r.tool(top, "rpmbuild", "-bb", "--quiet", "--nodeps", "--target", rpmArch[b.arch]+"-linux", "--define", "_topdir "+top, "holdfast.spec"); err != nil {
		return err
	}
	made, err := filepath.Glob(filepath.Join(top, "RPMS", rpmArch[b.arch], "*.rpm"))
	if err != nil || len(made) != 1 {
		return fmt.Errorf("rpmbuild has made %d packages, %w", len(made), err)
	}
	data, err := os.ReadFile(made[0])
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(r.files, filepath.Base(made[0])), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// tool runs a program of the system, for which all files have the time of the version.
func (r *release) tool(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.time.Unix(), 10), "TZ=UTC", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: scripts/deps.sh release installs it", err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}
