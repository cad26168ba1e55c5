package enginetest_test

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

func (e *engine) DescribeRecord(ctx context.Context, name string) (driver.RecordInfo, bool, error) {
	now, err := e.enterFor(ctx, e.caps.Records, "DescribeRecord")
	if err != nil {
		return driver.RecordInfo{}, false, err
	}
	defer e.mu.Unlock()
	r := e.looked(name, now).record
	if r == nil {
		return driver.RecordInfo{}, e.fault == "DescribeRecord finds every name", nil
	}
	info := driver.RecordInfo{
		Name: name, Head: e.out(r.data[:min(len(r.data), driver.RecordHead)]), Length: len(r.data), ExpiresIn: r.expiry.Sub(now),
	}
	switch e.fault {
	case "DescribeRecord gives the length of what it shows":
		info.Length = len(info.Head)
	case "DescribeRecord shows nothing":
		info.Head = nil
	case "DescribeRecord drops the end":
		info.ExpiresIn = 0
	case "DescribeRecord drops the name":
		info.Name = ""
	}
	return info, true, nil
}

func (e *engine) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	return func(yield func(driver.RecordInfo, error) bool) {
		names, err := e.recorded(ctx, prefix)
		if err != nil && e.fault != "ListRecords swallows errors" {
			yield(driver.RecordInfo{}, err)
			return
		}
		for _, name := range names {
			info, found, err := e.DescribeRecord(ctx, name)
			if !found && e.fault != "ListRecords shows names that are held" {
				continue
			}
			if info.Name = name; e.fault == "ListRecords drops the length" {
				info.Length = 0
			}
			if !yield(info, err) && e.fault != "ListRecords does not stop" {
				return
			}
		}
	}
}

// recorded returns the names whose records ListRecords describes.
func (e *engine) recorded(ctx context.Context, prefix string) (names []string, err error) {
	now, err := e.enterFor(ctx, e.caps.Records, "ListRecords")
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	for name := range e.names {
		n := e.looked(name, now)
		if held := len(n.leases) > 0; n.record == nil && !held || e.fault == "ListRecords leaves out names that are held" && held {
			continue
		}
		switch e.fault {
		case "ListRecords ignores the prefix":
			names = append(names, name)
		case "ListRecords takes ? for any character":
			if matchesAny(name, prefix) {
				names = append(names, name)
			}
		default:
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	switch {
	case e.fault == "ListRecords yields one twice" && len(names) > 100:
		names = append(names, names[0])
	case e.fault == "ListRecords stops after 128":
		names = names[:min(len(names), 128)]
	}
	return names, nil
}
