package net

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// mtu is the MTU of the devices, as for Ethernet.
const mtu = 1500

// endWithin bounds how long killed processes may take to end.
const endWithin = 20 * time.Second

// A machine is a network namespace, with the thread that keeps it. The namespace has no name: it
// ends with the last thread and process in it.
type machine struct {
	work chan func() // for the thread in the namespace
	tun  *os.File
	net  string // the namespace, as the links in /proc name it
}

// newMachine makes a namespace with a device that has the address. It passes each packet that the
// namespace sends to send.
func newMachine(address string, send func(packet []byte)) (*machine, error) {
	m := &machine{work: make(chan func())}
	failed := make(chan error, 1)
	go m.live(address, failed) // ends with close
	if err := <-failed; err != nil {
		return nil, err
	}
	go func() { // ends when the device is closed
		buffer := make([]byte, 65536)
		for {
			n, err := m.tun.Read(buffer)
			if err != nil {
				return
			}
			send(buffer[:n])
		}
	}()
	return m, nil
}

// live enters the namespace, reports the error of that or nil, and works there until the machine
// is closed.
func (m *machine) live(address string, failed chan<- error) {
	// The thread is never unlocked: it is of no use to others, and ends with this goroutine.
	// Until then it is the parent of the processes that it started, which Linux kills with it.
	runtime.LockOSThread()
	if syscall.Gettid() == os.Getpid() {
		// The main thread never ends, nor would its namespace. While this goroutine occupies it,
		// another goroutine runs on another thread.
		defer runtime.UnlockOSThread()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.live(address, failed)
		}()
		<-ended
		return
	}
	err := m.enter(address)
	failed <- err
	if err != nil {
		return
	}
	for do := range m.work {
		do()
	}
}

// enter moves the calling thread to a new namespace, and makes the device.
func (m *machine) enter(address string) (err error) {
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a host needs root, or CAP_SYS_ADMIN and CAP_NET_ADMIN (try: unshare --user --map-root-user): new network namespace: %w", err)
	}
	if m.net, err = os.Readlink(fmt.Sprintf("/proc/self/task/%d/ns/net", syscall.Gettid())); err != nil {
		return err
	}
	if m.tun, err = openTUN(); err != nil {
		return fmt.Errorf("a host needs CAP_NET_ADMIN and /dev/net/tun: %w", err)
	}
	ip := exec.Command("ip", "-batch", "-")
	ip.Stdin = strings.NewReader(fmt.Sprintf("link set lo up\naddress add %s/24 dev %s\nlink set %[2]s mtu %d up\n", address, device, mtu))
	if out, err := ip.CombinedOutput(); err != nil {
		_ = m.tun.Close()
		return fmt.Errorf("a host needs the ip program (Debian: apt-get install iproute2): %w %s", err, out)
	}
	return nil
}

// device is the name of the device in each namespace.
const device = "wire0"

// openTUN makes a device in the namespace of the calling thread. The device ends when it is
// closed.
func openTUN() (*os.File, error) {
	fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	const iffTUN, iffNoPI = 0x1, 0x1000 // IPv4 packets, with nothing before them
	var request struct {                // struct ifreq
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], device)
	request.flags = iffTUN | iffNoPI
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TUNSETIFF, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("make a TUN device: %w", errno)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// do runs f on the thread in the namespace.
func (m *machine) do(f func()) {
	done := make(chan struct{})
	m.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// kill kills all processes in the namespace, and returns when they have ended.
func (m *machine) kill() error {
	for end := time.Now().Add(endWithin); ; time.Sleep(5 * time.Millisecond) {
		inside, err := m.processes()
		if err != nil || len(inside) == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes %v do not end", inside)
		}
		for _, pid := range inside {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
		}
	}
}

// processes returns the running processes in the namespace. An ended process, even a zombie, is in
// no namespace.
func (m *machine) processes() (pids []int, err error) {
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil || pid == os.Getpid() {
			continue
		}
		if at, err := os.Readlink(link); err == nil && at == m.net {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// close removes the machine and all processes in it.
func (m *machine) close() error {
	err := m.kill()
	close(m.work)
	return errors.Join(err, m.tun.Close())
}
