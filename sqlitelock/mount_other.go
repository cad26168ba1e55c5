//go:build !linux

package sqlitelock

// isMountPoint is false: only directories are mounted here.
func isMountPoint(string) (bool, error) { return false, nil }
