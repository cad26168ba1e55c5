package doctor

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// An info is the reply to INFO: values by key.
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

// verbatim removes the prefix of a verbatim string in RESP 3.
func verbatim(text string) string { return strings.TrimPrefix(text, "txt:") }

// number returns 0 if the value is missing or not a number.
func (i info) number(key string) int64 {
	n, _ := strconv.ParseInt(i[key], 10, 64)
	return n
}

// isReplica reports whether the server is a replica.
func (i info) isReplica() bool { return i["role"] == "slave" }

// product returns the server's name and version, for people.
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

// oldest is the first version that has all commands of the scripts.
var oldest = []int{6, 2}

// newEnough reports whether the version with which the server claims to be compatible, whatever its
// name, is at least oldest. known is false if it claims none.
func (i info) newEnough() (enough, known bool) {
	var major, minor int
	_, err := fmt.Sscanf(i["redis_version"], "%d.%d", &major, &minor)
	return slices.Compare([]int{major, minor}, oldest) >= 0, err == nil
}

// A replica is a master's report of one of its replicas.
type replica struct {
	addr   string
	online bool
	behind int64 // bytes of the replication log that the replica has not acknowledged
	silent int64 // seconds since the replica last acknowledged
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
