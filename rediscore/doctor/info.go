package doctor

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// An info is the reply to INFO: values by their keys.
type info map[string]string

func parseInfo(text string) info {
	i := info{}
	for line := range strings.Lines(verbatim(text)) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && !strings.HasPrefix(line, "#") {
			i[key] = value
		}
	}
	return i
}

// verbatim takes off what a text in RESP 3 begins with.
func verbatim(text string) string { return strings.TrimPrefix(text, "txt:") }

// number returns 0 for what is missing or no number.
func (i info) number(key string) int64 {
	n, _ := strconv.ParseInt(i[key], 10, 64)
	return n
}

// isReplica reports whether the server follows another.
func (i info) isReplica() bool { return i["role"] == "slave" }

// product returns what the server is called and its version, for people.
func (i info) product() string {
	name := i["server_name"]
	if name == "" {
		name = "redis"
		if i["valkey_version"] != "" {
			name = "valkey"
		}
	}
	if version := i[name+"_version"]; version != "" {
		return name + " " + version
	}
	return name + ", compatible with " + i["redis_version"]
}

// oldest is the first version of the commands that the scripts use.
var oldest = []int{6, 2}

// newEnough compares the version that the server claims to be compatible
// with, whatever it is called. known is false if it claims none.
func (i info) newEnough() (enough, known bool) {
	var major, minor int
	_, err := fmt.Sscanf(i["redis_version"], "%d.%d", &major, &minor)
	return slices.Compare([]int{major, minor}, oldest) >= 0, err == nil
}

// A replica is what a master reports of one of its replicas.
type replica struct {
	addr   string
	online bool
	behind int64 // bytes of the log that it has not acknowledged
	silent int64 // seconds since it acknowledged anything
}

func (i info) replicas() []replica {
	var all []replica
	for n := 0; ; n++ {
		line, ok := i["slave"+strconv.Itoa(n)]
		if !ok {
			return all
		}
		fields := info{}
		for field := range strings.SplitSeq(line, ",") {
			key, value, _ := strings.Cut(field, "=")
			fields[key] = value
		}
		all = append(all, replica{
			addr:   net.JoinHostPort(fields["ip"], fields["port"]),
			online: fields["state"] == "online",
			behind: max(i.number("master_repl_offset")-fields.number("offset"), 0),
			silent: fields.number("lag"),
		})
	}
}
