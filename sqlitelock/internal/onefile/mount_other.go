//go:build !linux

package onefile

// isMountPoint is false: only directories are mounted here.
func isMountPoint(string) (bool, error) { return false, nil }
