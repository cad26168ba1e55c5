package holdfast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const handleID = "0123456789abcdef0123456789abcdef"

// TestHandleText checks that the text of a handle is one word of printable ASCII, and yields the
// same handle, for all names and modes.
func TestHandleText(t *testing.T) {
	for _, name := range []string{"a", "orders/42", "a.b c=\"d\"", "größe", "名前", strings.Repeat("x", holdfast.MaxNameLen)} {
		for _, sent := range []holdfast.Handle{
			holdfast.NewHandle(name, handleID, 1, holdfast.Exclusive),
			holdfast.NewHandle(name, lockinfo.NewLeaseID(), driver.MaxToken, holdfast.Shared),
			holdfast.NewHandle(name, handleID, 7, holdfast.Permits(2, 5)),
		} {
			text, err := sent.MarshalText()
			must(t, err)
			for _, b := range text {
				need(t, b > ' ' && b <= '~', "%q is not one word of printable ASCII", text)
			}
			var got holdfast.Handle
			if err := got.UnmarshalText(text); err != nil || got != sent {
				t.Errorf("%s arrives as %v, %v", sent, got, err)
			}
			asJSON, err := json.Marshal(sent)
			must(t, err)
			if err := json.Unmarshal(asJSON, &got); err != nil || got != sent {
				t.Errorf("through JSON %s arrives as %v, %v", sent, got, err)
			}
		}
	}
}

// TestHandleTextIsStrict checks that a text that was cut, lengthened or changed is refused, and
// leaves the handle as it was.
func TestHandleTextIsStrict(t *testing.T) {
	good := holdfast.NewHandle("deploy", handleID, 42, holdfast.Permits(2, 5))
	text, err := good.MarshalText()
	must(t, err)
	wrong := map[string]bool{"": true, "\n": true, string(text) + "\n": true, " " + string(text): true, string(text) + ".": true, strings.ToUpper(string(text)): true}
	for i := range text {
		wrong[string(text[:i])], wrong[string(text[i+1:])] = true, true
		for _, b := range []byte("0f.Z\x00") {
			changed := bytes.Clone(text)
			if changed[i] != b {
				changed[i] = b
				wrong[string(changed)] = true
			}
		}
	}
	// The following have the right checksum.
	for _, fields := range []string{
		"holdfast2.ZGVwbG95." + handleID + ".42.2/5", "holdfast1.." + handleID + ".42.exclusive", "holdfast1.ZGVwbG95=." + handleID + ".42.exclusive",
		"holdfast1.ZGVwbG95.0123.42.exclusive", "holdfast1.ZGVwbG95." + handleID + ".0.exclusive", "holdfast1.ZGVwbG95." + handleID + ".042.exclusive",
		"holdfast1.ZGVwbG95." + handleID + ".-1.exclusive", "holdfast1.ZGVwbG95." + handleID + ".99999999999999999999.exclusive",
		"holdfast1.ZGVwbG95." + handleID + ".42.other", "holdfast1.ZGVwbG95." + handleID + ".42.", "holdfast1.ZGVwbG95." + handleID + ".42.6/5",
		"holdfast1.ZGVwbG95." + handleID + ".42.0/5", "holdfast1.ZGVwbG95." + handleID + ".42.2/x", "holdfast1.Cg." + handleID + ".42.exclusive",
	} {
		wrong[fmt.Sprintf("%s.%08x", fields, crc32.ChecksumIEEE([]byte(fields)))] = true
	}
	for text := range wrong {
		h := good
		err := h.UnmarshalText([]byte(text))
		expect(t, errors.Is(err, holdfast.ErrInvalid) && h == good, "%q is read as %v, %v", text, h, err)
		if err != nil && strings.Contains(err.Error(), "0123456789") {
			t.Errorf("the error shows the lease ID: %v", err)
		}
	}
}

// TestHandleTextIsFixed checks that the format of the text stays the same, because processes of two
// releases exchange handles.
func TestHandleTextIsFixed(t *testing.T) {
	text := []byte("holdfast1.ZGVwbG95." + handleID + ".42.2/5")
	text = fmt.Appendf(text, ".%08x", crc32.ChecksumIEEE(text))
	var h holdfast.Handle
	err := h.UnmarshalText(text)
	expect(t, err == nil && h == holdfast.NewHandle("deploy", handleID, 42, holdfast.Permits(2, 5)), "%v, %v", h, err)
}

// TestHandleOfNoLease checks that handles that cannot belong to a lease have no text.
func TestHandleOfNoLease(t *testing.T) {
	for _, h := range []holdfast.Handle{
		{}, holdfast.NewHandle("", handleID, 1, holdfast.Exclusive), holdfast.NewHandle("a", "0123456789", 1, holdfast.Exclusive),
		holdfast.NewHandle("a", handleID, 0, holdfast.Exclusive), holdfast.NewHandle("a", handleID, driver.MaxToken+1, holdfast.Exclusive),
		holdfast.NewHandle("a", handleID, 1, 3), holdfast.NewHandle("a", handleID, 1, holdfast.Permits(2, 1)),
	} {
		text, err := h.MarshalText()
		expect(t, errors.Is(err, holdfast.ErrInvalid) && text == nil && !strings.Contains(err.Error(), "0123456789"), "%v has the text %q, %v", h, text, err)
	}
}

// TestLeave checks that no requests are sent for a lease that was left: not by the keep-alive,
// Release or Close. The store keeps the lease until its expiry. INVARIANT I9.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		var mu sync.Mutex
		var events []holdfast.EventKind
		c := newClient(t, engine, &holdfast.Options{TTL: 30 * time.Second, Observer: func(e holdfast.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e.Kind)
		}})
		l := mustAcquire(t, c, "a", nil)
		ctx := l.Context()
		ended := ctx.Done()
		time.Sleep(3 * time.Second)
		calls := fmt.Sprint(engine.calls)
		for range 2 {
			if handle, err := l.Leave(); err != nil || idOf(t, handle) != l.ID() {
				t.Error(handle, err)
			}
		}
		<-ended
		wantErr(t, context.Cause(ctx), holdfast.ErrLeft)
		wantErr(t, context.Cause(ctx), holdfast.ErrLost)
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("Release after Leave: %v", err)
		}
		wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLeft)
		l.Heartbeat()
		wantErr(t, c.Close(), nil)
		time.Sleep(26 * time.Second)
		expect(t, !l.Valid() && holders(t, engine.Engine, "a") == 1,
			"valid %t, and %d leases in the store, want one that is not trusted", l.Valid(), holders(t, engine.Engine, "a"))
		time.Sleep(2 * time.Second)
		nothingLeft(t, engine, "a")
		got := fmt.Sprint(engine.calls)
		expect(t, got == calls, "requests %s, and %s when it was left", got, calls)
		got = fmt.Sprint(events)
		expect(t, got == "[acquired left]", "the Observer heard %s", got)
	})
}

// TestLeaveWhatIsOver checks that an ended lease cannot be left.
func TestLeaveWhatIsOver(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		released := mustAcquire(t, c, "a", nil)
		released.Release(t.Context())
		handle, err := released.Leave()
		wantErr(t, err, holdfast.ErrLost)
		expect(t, handle == (holdfast.Handle{}), "%v came with the error", handle)
		lost := mustAcquire(t, c, "b", &holdfast.AcquireOptions{TTL: time.Second, KeepAlive: holdfast.KeepAliveOff})
		time.Sleep(2 * time.Second)
		wantErr(t, errOf(lost.Leave()), holdfast.ErrLost)
		wantErr(t, lost.Release(t.Context()), holdfast.ErrLost)
	})
}

// TestLeaveDuringRenewal checks that a renewal that is under way when its lease is left changes
// nothing.
func TestLeaveDuringRenewal(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 9 * time.Second})
		engine.set(delay(2*time.Second), nil)
		time.Sleep(4 * time.Second) // a renewal was sent at 3 s
		need(t, engine.count("extend") == 1, "%d renewals", engine.count("extend"))
		mustLeave(t, l)
		time.Sleep(time.Hour)
		expect(t, engine.count("extend") == 1 && !l.Valid(), "%d renewals, want none after it was left; valid %t", engine.count("extend"), l.Valid())
	})
}

// TestLeaveInDo checks that work that leaves its lease succeeds.
func TestLeaveInDo(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	err := c.Do(t.Context(), "a", nil, func(_ context.Context, l *holdfast.Lease) error {
		_, err := l.Leave()
		return err
	})
	expect(t, err == nil && holders(t, engine, "a") == 1, "Do: %v, %d leases in the store; want the one that was left", err, holders(t, engine, "a"))
}
