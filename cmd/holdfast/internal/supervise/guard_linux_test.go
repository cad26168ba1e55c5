package supervise

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestGuardAfterSuspension lets the boot clock jump over the limit, as it does while the machine is
// suspended. The next look must be due within a second, and kill the job.
func TestGuardAfterSuspension(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = read.Close(), write.Close() }()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = sysProcAttr()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	now := time.Hour
	g := &guard{
		reports: write, pgid: cmd.Process.Pid, job: newJob(os.Getpid(), cmd.Process.Pid, nil, ""),
		now: func() time.Duration { return now }, limit: now + 20*time.Minute, gone: make(chan struct{}),
	}
	go func() { // ends with the process, which look kills
		_ = cmd.Wait() // its status is read from ProcessState
		close(g.gone)
	}()
	if next := g.look(); next > time.Second {
		t.Errorf("it looks again after %s", next)
	}
	now += 30 * time.Minute
	g.look()
	select {
	case <-g.gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the job lives")
	}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
		t.Errorf("the job has ended with %v", ws)
	}
	if line, err := bufio.NewReader(read).ReadString('\n'); line != "cut 0\n" || err != nil {
		t.Errorf("the report is %q (%v)", line, err)
	}
}

// TestParseStat reads /proc/PID/stat of programs with awkward names.
func TestParseStat(t *testing.T) {
	const rest = " S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2 3\n"
	for name, data := range map[string]string{
		"sh":          "12 (sh)" + rest,
		"a) S 1 (b":   "12 (a) S 1 (b)" + rest,
		"with spaces": "12 (with spaces)" + rest,
	} {
		p, ok := parseStat([]byte(data))
		if want := (Process{PID: 12, Name: name, start: 4242, parent: 7, group: 8}); !ok || p != want {
			t.Errorf("%q is read as %+v, want %+v", data, p, want)
		}
	}
	// The first thread of a program may end before the others.
	for data, want := range map[string]bool{
		"12 (sh) Z 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2 3": true,
		"12 (sh) Z 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 2 0 4242 1 2 3": false,
	} {
		if p, ok := parseStat([]byte(data)); !ok || p.dead != want {
			t.Errorf("%q is dead: %t, want %t", data, p.dead, want)
		}
	}
	for _, data := range []string{"", "12", "12 (sh", "12 (sh) S 7", ")12 (" + rest, "x (sh)" + rest} {
		if p, ok := parseStat([]byte(data)); ok {
			t.Errorf("%q is read as %+v", data, p)
		}
	}
}

// TestWalkByScan checks that a scan finds the same descendants where the kernel lists no children.
func TestWalkByScan(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sh -c 'sleep 60 & echo; wait' & wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	root, _ := look(cmd.Process.Pid)
	var listed, scanned []Process
	below(root, listedChildren, func(p Process) { listed = append(listed, p) })
	below(root, scannedChildren(), func(p Process) { scanned = append(scanned, p) })
	if len(listed) != 2 || len(scanned) != 2 {
		t.Errorf("listed %v, scanned %v, want two each", listed, scanned)
	}
	for _, p := range append(scanned, root) {
		if err := p.send(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	_ = cmd.Wait() // it was killed
	// A signal to a process that has ended does nothing.
	if err := root.send(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// TestEncodeCommand checks that arguments may be empty and contain any bytes.
func TestEncodeCommand(t *testing.T) {
	c := Command{Path: "/bin/x", Args: []string{"x", "", "a b\nc"}, Env: []string{"A=", "B=\xff"}}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends when everything is read
		_, _ = write.WriteString(c.encode(true) + "until 5\n")
		_ = write.Close()
	}()
	r := bufio.NewReader(read)
	got, foreground, err := decodeCommand(r)
	if err != nil || !foreground || got.Path != c.Path || len(got.Args) != 3 || got.Args[2] != c.Args[2] || len(got.Env) != 2 || got.Env[1] != c.Env[1] {
		t.Errorf("%+v is read as %+v (%v)", c, got, err)
	}
	if line, _ := r.ReadString('\n'); line != "until 5\n" {
		t.Errorf("the next order is %q", line)
	}
}

// TestKillAtNeedsNoMoreOrders checks that the orders that a supervisor sends with the command are
// enough to end the job, because the supervisor may be stopped right afterwards.
func TestKillAtNeedsNoMoreOrders(t *testing.T) {
	ordersEnd, orders, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reports, reportsEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _, _, _ = ordersEnd.Close(), orders.Close(), reports.Close(), reportsEnd.Close() }()
	if _, err := reportsEnd.WriteString("started 7\n"); err != nil {
		t.Fatal(err)
	}
	w := &warden{orders: orders, reports: bufio.NewReader(reports)}
	at := time.Now().Add(20 * time.Second)
	if pgid, err := w.run(Command{Path: "/bin/x", Args: []string{"x"}, KillAt: at}, false); pgid != 7 || err != nil {
		t.Fatalf("it runs as %d (%v)", pgid, err)
	}
	_ = orders.Close() // nothing more will come
	r := bufio.NewReader(ordersEnd)
	if _, _, err := decodeCommand(r); err != nil {
		t.Fatal(err)
	}
	line, _ := r.ReadString('\n')
	var limit time.Duration
	if _, err := fmt.Sscanf(line, "until %d\n", &limit); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if left := limit - bootTime(); left < 10*time.Second || left > 20*time.Second {
		t.Errorf("the job is killed in %s, want 20 s", left)
	}
}
