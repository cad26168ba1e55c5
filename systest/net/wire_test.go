package net

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const (
	syn = 0x02
	ack = 0x10
)

// segment returns a TCP packet with some bytes of data. The first byte, mark, identifies the
// packet.
func segment(from, to *Host, fromPort, toPort uint16, flags byte, mark byte, data int) []byte {
	p := make([]byte, 40+data)
	p[0], p[9] = 0x45, protoTCP
	copy(p[12:], from.Addr.AsSlice())
	copy(p[16:], to.Addr.AsSlice())
	binary.BigEndian.PutUint16(p[20:], fromPort)
	binary.BigEndian.PutUint16(p[22:], toPort)
	p[32], p[33] = 5<<4, flags
	if data > 0 {
		p[40] = mark
	}
	return p
}

// An end is a host that records which packets arrive, and when.
type end struct {
	*Host
	marks []byte
	after []time.Duration
}

// newEnds returns a wire with hosts, in virtual time.
func newEnds(n int) (*Wire, []*end) {
	w, began := NewWire(1), time.Now()
	ends := make([]*end, n)
	for i := range ends {
		e := &end{}
		e.Host = w.Attach(fmt.Sprint(i), func(p []byte) {
			e.after = append(e.after, time.Since(began))
			if len(p) > 40 {
				e.marks = append(e.marks, p[40])
			}
		})
		ends[i] = e
	}
	return w, ends
}

// reaches reports whether a packet reaches its host at once.
func reaches(w *Wire, from, to *end, fromPort, toPort uint16, flags byte) bool {
	before := len(to.after)
	w.Send(from.Host, segment(from.Host, to.Host, fromPort, toPort, flags, 0, 1))
	return len(to.after) > before
}

// ways returns the directions that are not cut: "01" means from host 0 to host 1.
func ways(w *Wire, ends []*end) (open string) {
	for i, from := range ends {
		for j, to := range ends {
			if i != j && reaches(w, from, to, 1000, 2000, ack) {
				open += fmt.Sprintf("%d%d ", i, j)
			}
		}
	}
	return open
}

func TestCuts(t *testing.T) {
	const all = "01 02 10 12 20 21 "
	for name, c := range map[string]struct {
		cut  func(w *Wire, e []*end)
		open string
	}{
		"none":    {func(*Wire, []*end) {}, all},
		"both":    {func(w *Wire, e []*end) { w.Cut(e[0].Host, e[1].Host) }, "02 12 20 21 "},
		"one way": {func(w *Wire, e []*end) { w.OneWay(e[0].Host, e[1].Host) }, "02 10 12 20 21 "},
		"split":   {func(w *Wire, e []*end) { w.Split([]*Host{e[2].Host}, []*Host{e[0].Host, e[1].Host}) }, "01 10 "},
		"cyclic": {func(w *Wire, e []*end) {
			for i := range e {
				w.OneWay(e[i].Host, e[(i+1)%3].Host)
			}
		}, "02 10 21 "},
		"loss": {func(w *Wire, e []*end) { w.Link(e[0].Host, e[1].Host).Loss(1) }, "02 12 20 21 "},
		"port": {func(w *Wire, e []*end) { w.Port(e[1].Host, 2000) }, "02 10 12 20 "},
	} {
		t.Run(name, func(t *testing.T) {
			w, ends := newEnds(3)
			c.cut(w, ends)
			if got := ways(w, ends); got != c.open {
				t.Errorf("open are %q, want %q", got, c.open)
			}
			w.Heal()
			if got := ways(w, ends); got != all {
				t.Errorf("healed: open are %q", got)
			}
		})
	}
}

// TestPort checks that Port cuts one port in both directions, and no other port.
func TestPort(t *testing.T) {
	w, e := newEnds(2)
	w.Port(e[1].Host, 2000)
	for _, c := range []struct {
		from, to         *end
		fromPort, toPort uint16
		open             bool
	}{{e[0], e[1], 1000, 2000, false}, {e[1], e[0], 2000, 1000, false}, {e[0], e[1], 1000, 2001, true}, {e[1], e[0], 2001, 2000, true}} {
		if got := reaches(w, c.from, c.to, c.fromPort, c.toPort, ack); got != c.open {
			t.Errorf("%s:%d to %s:%d: %t", c.from.Name, c.fromPort, c.to.Name, c.toPort, got)
		}
	}
}

func TestVanishedStaysAway(t *testing.T) {
	w, ends := newEnds(3)
	w.leave(ends[1].Host)
	w.Heal()
	if got, want := ways(w, ends), "02 20 "; got != want {
		t.Errorf("open are %q, want %q", got, want)
	}
	if got := w.Counts(); got != (Counts{Carried: 2, Lost: 4}) {
		t.Errorf("%+v", got)
	}
}

// TestForget checks that forgotten connections are dead in both directions, even after Heal. New
// connections work, even with the same ports.
func TestForget(t *testing.T) {
	w, e := newEnds(3)
	old := func() [4]bool {
		return [4]bool{
			reaches(w, e[0], e[1], 1000, 2000, ack), reaches(w, e[1], e[0], 2000, 1000, ack),
			reaches(w, e[0], e[2], 1000, 2000, ack), reaches(w, e[0], e[1], 1001, 2000, syn),
		}
	}
	if got := old(); got != [4]bool{true, true, true, true} {
		t.Fatalf("before: %v", got)
	}
	w.Forget(e[1].Host, e[0].Host)
	w.Heal()
	if got := old(); got != [4]bool{false, false, true, true} {
		t.Errorf("after: %v, want the old connection dead, and another host's and a new one alive", got)
	}
	if !reaches(w, e[0], e[1], 1000, 2000, syn) || !reaches(w, e[1], e[0], 2000, 1000, syn|ack) {
		t.Error("the ports of the old connection cannot be used for a new one")
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := newEnds(2)
		l := w.Link(e[1].Host, e[0].Host).Delay(40*time.Millisecond, 0)
		for i := range byte(3) {
			w.Send(e[0].Host, segment(e[0].Host, e[1].Host, 1, 2, ack, i, 1))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(e[1].after, []time.Duration{40 * time.Millisecond, 50 * time.Millisecond, 60 * time.Millisecond}) || !slices.Equal(e[1].marks, []byte{0, 1, 2}) {
			t.Errorf("arrived after %v, in the order %v", e[1].after, e[1].marks)
		}
		// Packets sent at the same time keep their order. The jitter is spread over its whole
		// range.
		for i := range byte(5) {
			w.Send(e[1].Host, segment(e[1].Host, e[0].Host, 2, 1, ack, i, 1))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(e[0].marks, []byte{0, 1, 2, 3, 4}) {
			t.Errorf("in the order %v", e[0].marks)
		}
		l.Delay(10*time.Millisecond, 20*time.Millisecond)
		const n = 200
		for range n {
			w.Send(e[0].Host, segment(e[0].Host, e[1].Host, 1, 2, ack, 0, 1))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		jittered := e[1].after[3:]
		least, most := slices.Min(jittered), slices.Max(jittered)
		if spread := most - least; len(jittered) != n || spread < 15*time.Millisecond || spread > 20*time.Millisecond {
			t.Errorf("%d packets with a jitter of 20ms arrived within %s", len(jittered), spread)
		}
	})
}

func TestLossAndCopies(t *testing.T) {
	const n = 10000
	w, e := newEnds(2)
	w.Link(e[0].Host, e[1].Host).Loss(0.2)
	for range n {
		reaches(w, e[0], e[1], 1, 2, ack)
	}
	if got := len(e[1].after); got < n*78/100 || got > n*82/100 {
		t.Errorf("with a loss of 20 %% %d of %d arrived", got, n)
	}
	w.Heal()
	w.Link(e[0].Host, e[1].Host).Copies(0.1)
	for range n {
		reaches(w, e[1], e[0], 1, 2, ack)
	}
	if got := len(e[0].after); got < n*108/100 || got > n*112/100 {
		t.Errorf("with 10 %% of copies %d of %d arrived", got, n)
	}
}

func TestMTU(t *testing.T) {
	w, e := newEnds(2)
	w.Link(e[0].Host, e[1].Host).MTU(1000)
	for _, data := range []int{960, 961} {
		w.Send(e[0].Host, segment(e[0].Host, e[1].Host, 1, 2, ack, byte(data-960), data))
	}
	if !slices.Equal(e[1].marks, []byte{0}) {
		t.Errorf("of packets of 1000 and 1001 bytes these arrived: %v", e[1].marks)
	}
}

// TestStrangePackets checks that the wire drops everything that is not an IPv4 packet between its
// hosts, and that malformed packets do no harm.
func TestStrangePackets(t *testing.T) {
	w, e := newEnds(2)
	good := segment(e[0].Host, e[1].Host, 1, 2, ack, 0, 1)
	change := func(at int, to byte) []byte {
		p := append([]byte(nil), good...)
		p[at] = to
		return p
	}
	for what, p := range map[string][]byte{
		"empty": nil, "short": good[:19], "IPv6": change(0, 0x65),
		"longer header than packet": append([]byte{0x4f}, good[1:24]...), "to nobody": change(19, 99), "forged": change(15, 2),
	} {
		w.Send(e[0].Host, p)
		if len(e[1].after) != 0 {
			t.Fatalf("%s: carried", what)
		}
	}
	for _, p := range [][]byte{good[:20], good[:23], good[:30], change(7, 1)} {
		w.Send(e[0].Host, p)
	}
	if len(e[1].after) != 4 {
		t.Errorf("%d of 4 packets without ports, or with half a header, are carried", len(e[1].after))
	}
}

// TestQueueIsBounded checks that a full wire loses further packets, and works again later.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := newEnds(2)
		w.Link(e[0].Host, e[1].Host).Delay(time.Second, 0)
		for range longestQueue + 10 {
			w.Send(e[0].Host, segment(e[0].Host, e[1].Host, 1, 2, ack, 0, 1))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := len(e[1].after); got != longestQueue || w.Counts().Lost != 10 {
			t.Errorf("%d arrived, %d lost", got, w.Counts().Lost)
		}
		w.Heal()
		if !reaches(w, e[0], e[1], 1, 2, ack) {
			t.Error("the wire is not good again")
		}
	})
}
