package python

// makeNode tells what os.mknod makes without a kind, or of one that is no
// device, from a device.
func (c *invocation) makeNode() *val {
	if mode := c.at(1, "mode"); !c.open && (mode == nil || plainNode(mode)) {
		return c.it.report("os.mkfifo", c.arguments, c.self, c.n)
	}
	return nil
}

// plainNode: a file, a pipe or a socket, by all that a mode may be.
func plainNode(mode *val) bool {
	n, ok := mode.int()
	if !ok || mode.open {
		return false
	}
	switch n & 0o170000 {
	case 0, 0o100000, 0o010000, 0o140000:
		return true
	}
	return false
}
