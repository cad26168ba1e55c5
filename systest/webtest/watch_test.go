//go:build web

package webtest

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// call sends a command of the browser's protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	p.check(command.Method, err)
	return result
}

// watch makes hear receive all events of a tab that may be trouble.
func (p *tab) watch(ctx context.Context) error {
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		return err
	}
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(ctx, audits.Enable, cdp.Empty{}); return err },
	} {
		if err := enable(); err != nil {
			return err
		}
	}
	return nil
}

// hear handles an event of the tab.
func (p *tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			p.blame("console.%s: %s", e.Type, consoleText(e.Args))
		}
	case *runtime.EventExceptionThrown:
		p.blame("exception: %s %s", e.ExceptionDetails.Text, description(e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.blame("log: %s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventBindingCalled:
		if e.Name == violationBinding {
			p.blame("Content-Security-Policy: %s", e.Payload)
		}
	case *audits.EventIssueAdded:
		switch e.Issue.Code {
		case audits.InspectorIssueCodeContentSecurityPolicyIssue, audits.InspectorIssueCodeDeprecationIssue, audits.InspectorIssueCodeQuirksModeIssue,
			audits.InspectorIssueCodeMixedContentIssue, audits.InspectorIssueCodeStylesheetLoadingIssue:
			p.blame("issue: %s", e.Issue.Code)
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !p.mayAsk(url) {
			p.blame("a request to another host: %s", url)
		}
	}
}

// mayAsk reports whether the page may load a URL: one of its own origin, or one that it has made
// itself.
func (p *tab) mayAsk(url string) bool {
	return strings.HasPrefix(url, p.origin+"/") || strings.HasPrefix(url, "blob:"+p.origin+"/") || url == "about:blank" || strings.HasPrefix(url, "data:,")
}

func consoleText(args []*runtime.RemoteObject) string {
	var texts []string
	for _, arg := range args {
		texts = append(texts, description(arg))
	}
	return strings.Join(texts, " ")
}

func description(o *runtime.RemoteObject) string {
	switch {
	case o == nil:
		return ""
	case o.Description != "":
		return o.Description
	}
	var text string
	if json.Unmarshal(o.Value, &text) == nil {
		return text
	}
	return string(o.Value)
}
