//go:build web

package webtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// shared has what all tests share: the command, built once, and one browser. In it, each test has
// its own cookies and storage.
var shared struct {
	holdfast string // the path of the command
	browser  context.Context
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // most tests only wait
		panic(err)
	}
	status, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "webtest:", err)
		status = 1
	}
	os.Exit(status)
}

func runTests(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "webtest")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	shared.holdfast = filepath.Join(dir, "holdfast")
	build := exec.Command("go", "build", "-o", shared.holdfast, "github.com/holdfast-locks/holdfast/cmd/holdfast")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the command: %w\n%s", err, out)
	}
	end, err := startBrowser(dir)
	if err != nil {
		return 0, err
	}
	defer end()
	return m.Run(), nil
}

// startBrowser starts the browser. end stops it, and so does the end of this process.
func startBrowser(dir string) (end func(), err error) {
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		return nil, fmt.Errorf("%w: install it (Debian: apt-get install chromium-headless-shell)", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.DisableGPU,
		chromedp.WindowSize(1280, 900),
		// No name of another host can be resolved.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // root cannot use the sandbox
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	browser, cancel := chromedp.NewContext(allocator)
	if err := chromedp.Do(browser); err != nil {
		stop()
		return nil, err
	}
	shared.browser = browser
	return func() {
		cancel()
		stop()
		_ = chromedp.Cancel(browser) // waits until the browser has ended
	}, nil
}
