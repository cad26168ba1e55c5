package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clone is the tree in which the version is made.
func (r *release) clone() string { return filepath.Join(r.work, "tree") }

// prepare makes a clone with a commit that has the version in it, and the tags. The commit
// has the author and the time of the one before it, so it is the same wherever it is made.
func (r *release) prepare() error {
	at := "HEAD"
	if r.rebuild {
		at = "refs/tags/" + r.version
	}
	at = r.git("rev-parse", at+"^{commit}")
	if err := r.inClone(nil, "clone", "--quiet", "--no-checkout", r.tree, r.clone()); err != nil {
		return err
	}
	if err := r.inClone(nil, "-C", r.clone(), "checkout", "--quiet", "--detach", at); err != nil {
		return err
	}
	who := strings.Split(r.git("log", "-1", "--format=%an%n%ae%n%ct", at), "\n")
	seconds, err := strconv.ParseInt(who[len(who)-1], 10, 64)
	if err != nil || len(who) != 3 {
		return fmt.Errorf("the author of %s: %q", at, who)
	}
	r.time = time.Unix(seconds, 0).UTC()
	if !r.rebuild {
		if err := r.commitVersion(who); err != nil {
			return err
		}
	}
	out, err := exec.Command("git", "-C", r.clone(), "rev-parse", "HEAD").Output()
	if err != nil {
		return err
	}
	r.commit = strings.TrimSpace(string(out))
	r.modules, err = readModules(r.clone())
	return err
}

// commitVersion writes, commits and tags the version in the clone.
func (r *release) commitVersion(who []string) error {
	files := strings.Fields(r.git("ls-files", "*go.mod", "*go.work"))
	if err := requireVersion(r.clone(), r.version, files); err != nil {
		return err
	}
	if err := r.datedChangelog(); err != nil {
		return err
	}
	as := []string{
		"GIT_AUTHOR_NAME=" + who[0], "GIT_AUTHOR_EMAIL=" + who[1], "GIT_AUTHOR_DATE=" + who[2] + " +0000",
		"GIT_COMMITTER_NAME=" + who[0], "GIT_COMMITTER_EMAIL=" + who[1], "GIT_COMMITTER_DATE=" + who[2] + " +0000",
	}
	in := []string{"-C", r.clone(), "-c", "commit.gpgSign=false", "-c", "tag.gpgSign=false", "-c", "core.hooksPath=/dev/null"}
	if err := r.inClone(as, append(in, "commit", "--quiet", "--all", "-m", "release "+r.version)...); err != nil {
		return err
	}
	modules, err := readModules(r.clone())
	if err != nil {
		return err
	}
	for _, m := range modules {
		if err := r.inClone(as, append(in, "tag", "-a", "-m", m.path+" "+r.version, m.tag(r.version))...); err != nil {
			return err
		}
	}
	return nil
}

// datedChangelog gives what is unreleased the heading of the version.
func (r *release) datedChangelog() error {
	path := filepath.Join(r.clone(), "CHANGELOG.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	heading := "## Unreleased\n\n## " + r.version + " - " + r.time.Format(time.DateOnly) + "\n"
	return os.WriteFile(path, []byte(strings.Replace(string(text), "## Unreleased\n", heading, 1)), 0o644) //nolint:gosec // a source file
}

// pack has the go command make the modules' packages of the tags, as a proxy would, and
// in the form in which GOPROXY takes them.
func (r *release) pack() error {
	env := []string{
		"GOPROXY=direct", "GOVCS=*:git", "GOMODCACHE=" + filepath.Join(r.work, "packed"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url." + r.clone() + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + ours,
	}
	for _, m := range r.modules {
		out, err := r.goCommand(r.work, env, "mod", "download", "-json", m.path+"@"+r.version)
		if err != nil {
			return err
		}
		var got struct{ Origin struct{ Hash string } }
		if err := json.Unmarshal(out, &got); err != nil {
			return err
		}
		if got.Origin.Hash != r.commit {
			return fmt.Errorf("%s %s is commit %s, and not %s", m.path, r.version, got.Origin.Hash, r.commit)
		}
	}
	return nil
}

// publish adds the commit and the tags to the repository. Its branch must not have moved.
func (r *release) publish() error {
	if r.dry || r.rebuild {
		return nil
	}
	if err := r.inClone(nil, "-C", r.tree, "pull", "--quiet", "--ff-only", "--no-tags", r.clone(), r.commit); err != nil {
		return err
	}
	for _, m := range r.modules {
		tag := "refs/tags/" + m.tag(r.version)
		if err := r.inClone(nil, "-C", r.tree, "fetch", "--quiet", "--no-tags", r.clone(), tag+":"+tag); err != nil {
			return err
		}
	}
	fmt.Printf("release: push it with: git push --atomic origin HEAD $(git tag --points-at HEAD)\n")
	return nil
}

// git returns what a command of Git prints in the tree, or "" if it fails.
func (r *release) git(args ...string) string {
	out, _ := exec.Command("git", append([]string{"-C", r.tree}, args...)...).Output()
	return strings.TrimSpace(string(out))
}

// inClone runs Git with more environment.
func (r *release) inClone(env []string, args ...string) error {
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// goCommand runs the go command in dir, outside of any workspace, with our modules from
// what is packed, and other modules from the module cache of the caller, or from their
// proxy. Its own module cache is empty at first.
func (r *release) goCommand(dir string, env []string, args ...string) ([]byte, error) {
	known, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, err
	}
	theirs := strings.Fields(string(known))
	proxies := []string{
		"file://" + filepath.Join(r.work, "packed", "cache", "download"),
		"file://" + filepath.Join(theirs[0], "cache", "download"),
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GOWORK=off", "GOFLAGS=-modcacherw -mod=mod -trimpath", "GOMODCACHE="+filepath.Join(r.work, "modules"),
		"GOPROXY="+strings.Join(append(proxies, theirs[1:]...), ","), "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=", "GONOSUMDB=",
		"CGO_ENABLED=0", "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.time.Unix(), 10))
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}
