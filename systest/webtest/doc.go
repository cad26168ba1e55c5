// Package webtest opens the dashboard in a real browser, in front of real servers, stores and
// workers. Its tests have the build tag web; make test-web runs them. They need Debian's
// chromium-headless-shell and nginx.
//
// Each page that a test opens is watched. A violation of the Content-Security-Policy, an error or a
// warning on the console, an uncaught exception or a request to another host fails the test at once.
//
// testdata/axe.min.js is axe-core 4.14.1 from npm, under the Mozilla Public License. It is part of
// the tests only.
package webtest
