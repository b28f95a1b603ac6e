//go:build linux && !amd64

package pid1

// hide does nothing: on other machines nobody has tried what hide_amd64.go does.
func hide(int) error { return nil }
