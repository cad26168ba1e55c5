package main

import "testing"

func TestCommandsAreCounted(t *testing.T) {
	for line, want := range map[string]commands{
		`+1339518083.107412 [0 127.0.0.1:60866] "set" "x" "1"`: {outer: 1},
		`+1339518083.107412 [0 127.0.0.1:60866] "EVALSHA" "f"`: {outer: 1},
		`+1339518083.107412 [0 lua] "set" "x" "1"`:             {inner: 1},
		`+1339518083.107412 [0 127.0.0.1:60866] "INFO" "cpu"`:  {},
		`+1339518083.107412 [0 127.0.0.1:60866] "ping"`:        {},
		`+1339518083.107412 [0 [::1]:60866] "get" "x] lua] "`:  {outer: 1},
		`+OK`: {},
	} {
		var got commands
		if got.note(line); got != want {
			t.Errorf("%s: got %+v, want %+v", line, got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	const info = "# Commandstats\r\ncmdstat_evalsha:calls=12,usec=345,usec_per_call=28.75\r\nused_cpu_user:1.5\r\n"
	field, ok := infoField(info, "cmdstat_evalsha")
	if calls := infoPart(field, "calls"); !ok || calls != 12 {
		t.Errorf("got %v, %t, want 12", calls, ok)
	}
	if text, ok := infoField(info, "used_cpu"); ok {
		t.Errorf("used_cpu is not there, and got %q", text)
	}
	if v := infoPart(field, "usec_per"); v != 0 {
		t.Errorf("usec_per is not there, and got %v", v)
	}
}
