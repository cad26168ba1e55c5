//go:build unix

package runner

import (
	"cmp"
	"errors"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
)

// environment returns env, which it modifies, with the variables that describe the command's
// locks: some describe the first lock only, others have a line for each lock. It replaces the
// values of an outer holdfast, because programs differ in which of two entries they use. It keeps
// the user's own variables, including those that name a store.
func environment(env []string, j Job, h hold) []string {
	ours := j.variables(h)
	isReplaced := func(outer string) bool {
		key, _, _ := strings.Cut(outer, "=")
		return slices.ContainsFunc(ours, func(own string) bool { return strings.HasPrefix(own, key+"=") })
	}
	return append(slices.DeleteFunc(env, isReplaced), ours...)
}

// variables returns the environment entries of processes that work under a hold.
func (j Job) variables(h hold) []string {
	lease, holds := h.first(), slices.Clone(j.Outer)
	var names, tokens []string
	for _, l := range h.leases {
		names = append(names, l.Name())
		tokens = append(tokens, strconv.FormatUint(l.Token(), 10))
		holds = append(holds, HeldLock{Token: l.Token(), Store: j.Store, Name: l.Name()})
	}
	return append([]string{
		"HOLDFAST_NAME=" + lease.Name(),
		"HOLDFAST_MODE=" + j.Opts.Mode.Kind(),
		"HOLDFAST_FENCING_TOKEN=" + strconv.FormatUint(lease.Token(), 10),
		mark(h),
		"HOLDFAST_NAMES=" + strings.Join(names, "\n"),
		"HOLDFAST_FENCING_TOKENS=" + strings.Join(tokens, "\n"),
		"HOLDFAST_HOLDER=" + lease.Holder().String(),
		"HOLDFAST_TTL_MS=" + strconv.FormatInt(TTL(j.Opts).Milliseconds(), 10),
		"HOLDFAST_LOCK_STORE=" + j.Store,
		keeper.Entry(cmp.Or(j.Socket, j.Control.Path())),
		HeldVariable + "=" + holds.String(),
	}, j.StoreEnv...)
}

// mark returns the environment entry that only this job has.
func mark(h hold) string { return "HOLDFAST_LEASE_ID=" + string(h.first().ID()) }

// LookPath finds a command's file as a shell would. It returns an *exit.Error if the command
// cannot run, so that such a command takes no lock. The error begins with verb, the holdfast
// command that calls LookPath.
func LookPath(verb, name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) { // the user's PATH has the directory "."
		return "", exit.Errorf(execStatus(err), "%s: %w", verb, err)
	}
	return path, nil
}

// execStatus returns the status that shells use for a command that did not start.
func execStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOENT) {
		return exit.NotFound
	}
	return exit.NotExecutable
}
