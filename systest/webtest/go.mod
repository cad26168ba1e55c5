module github.com/holdfast-locks/holdfast/systest/webtest

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/holdfast-locks/holdfast v0.1.0
	github.com/holdfast-locks/holdfast/redislock v0.1.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/redis/rueidis v1.0.79 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
