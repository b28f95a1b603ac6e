package python

import "strings"

// clipboardReads are methods of a clipboard of Gtk that give what is in it; the
// others put something there, or own it.
var clipboardReads = map[string]bool{
	"wait_for_text": true, "wait_for_contents": true, "wait_for_image": true, "wait_for_rich_text": true, "wait_for_uris": true,
	"request_text": true, "request_contents": true, "request_image": true, "request_rich_text": true, "request_uris": true,
}

// gtkClipboard is the type of the clipboard of Gtk.
const gtkClipboard = "gi.repository.Gtk.Clipboard"

// readsClipboard notes a method that reads the clipboard, of one or of something
// that may be one.
func (it *interp) readsClipboard(v *val, name string, n *node) {
	if !clipboardReads[name] || it.quiet > 0 {
		return
	}
	if v.kind == kObj && strings.HasPrefix(v.text, gtkClipboard) || v.kind == kUnknown && strings.Contains(it.t.src, "Clipboard") {
		it.reported++
		it.b.Action("clipboard", "Gtk.Clipboard", name, it.pos(n))
	}
}

// types notices characters that are put into a terminal as if somebody had typed
// them.
func (c *invocation) types() {
	if c.name != "fcntl.ioctl" || c.it.quiet > 0 {
		return
	}
	if op := c.nth(1); op.text == "termios.TIOCSTI" || op.kind == kInt && op.text == "21522" {
		if typed, ok := c.nth(2).oneText(); ok && strings.Trim(typed, "\x00") == "" {
			return // which wakes up who reads there, and says nothing
		}
		c.it.b.Action("keys", "input is put into a terminal", c.name, c.it.pos(c.n))
	}
}
