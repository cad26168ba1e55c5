package main

import (
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

var processor = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)

// release matches the version in a kernel's release, without the suffix of its builder.
var release = regexp.MustCompile(`^[0-9.]*[0-9]`)

// machine returns the processor and the system, as far as they are known.
func machine() string {
	parts := []string{runtime.GOOS + "/" + runtime.GOARCH}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := processor.FindSubmatch(info); m != nil {
			parts = append([]string{strings.TrimSpace(string(m[1]))}, parts...)
		}
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		parts = append(parts, "kernel "+string(release.Find(kernel)))
	}
	return strings.Join(parts, ", ")
}

// compared are the modules whose versions matter.
var compared = []string{
	"github.com/bsm/redislock", "github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9",
	"github.com/redis/rueidis", "go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server/v3", "github.com/jackc/pgx/v5",
}

// versions returns the versions of Go and of the compared modules.
func versions() map[string]string {
	all := map[string]string{"Go": strings.TrimPrefix(runtime.Version(), "go")}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(compared, m.Path) {
				all[m.Path] = m.Version
			}
		}
	}
	return all
}
