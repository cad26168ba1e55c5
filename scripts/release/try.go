package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// installed is the command as "go install" makes it of the packed modules.
func (r *release) installed() string { return filepath.Join(r.work, "bin", "holdfast") }

// try installs the command as a user does, on a machine whose module cache is empty, and
// runs the commands of the README.
func (r *release) try() error {
	bin := filepath.Dir(r.installed())
	if _, err := r.goCommand(r.work, []string{"GOBIN=" + bin}, "install", ours+"/cmd/holdfast@"+r.version); err != nil {
		return err
	}
	out, err := exec.Command(r.installed(), "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "holdfast "+r.version+" ") {
		return fmt.Errorf("holdfast version: %w\n%s", err, out)
	}
	return r.tryReadme()
}

// typed finds what the README has its reader type in a shell.
var typed = regexp.MustCompile(`(?m)^\$ (bin/holdfast .*)$`)

// tryReadme runs the README's first session: one run holds the lock, the next one is
// refused, and the last one waits.
func (r *release) tryReadme() error {
	readme, err := os.ReadFile(filepath.Join(r.clone(), "README.md"))
	if err != nil {
		return err
	}
	commands := typed.FindAllStringSubmatch(string(readme), -1)
	if len(commands) != 3 {
		return fmt.Errorf("README.md has %d commands, want 3", len(commands))
	}
	script := ""
	for i, c := range commands {
		script += strings.Replace(c[1], "sleep 20", "sleep 5", 1) + "\n"
		if i == 0 {
			script += "until bin/holdfast check -q nightly; do sleep .1; done\n"
		}
	}
	home := filepath.Join(r.work, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = r.work
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err == nil && !regexp.MustCompile(`(?s)held by .*\nstatus 75\n.*mine\n$`).Match(out) {
		err = errors.New("it should be refused once, and wait once")
	}
	if err != nil {
		return fmt.Errorf("the commands of README.md: %w\n%s\n%s", err, script, out)
	}
	return nil
}
