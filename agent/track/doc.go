// Package track knows which entries of a folder were touched since somebody
// last asked, and by whom.
//
// It looks in two ways. Watches (inotify) on every folder say which names were
// touched: [Tracker.Observe] then looks at those alone. Where watches cannot be
// trusted (an overflow, a limit, hard links whose other names are unknown), or
// where it is asked to, it walks the whole tree and compares each entry with
// what it remembers: 16 bytes an entry, made of its inode, times, size, mode
// and links. Content is never read for that: who asks decides whose it needs.
//
// Who touched an entry is known by time. The tracker is told when an exec
// begins and ends, reads its watches at each of these moments, and books what
// they saw to all that could have done it.
//
// What watches cannot see: a write through a mapping that a process still holds
// when it is looked at (the next walk sees it); a change through a name outside
// the tree (a host folder's hard links); and a change through a second name that
// was made in a folder that is new itself, and that is gone again. A walk sees
// all of these.
//
// Nothing is followed: every path is walked name by name from the folder on,
// links are never passed, and what is not a regular file is never opened. The
// tree belongs to hostile code that runs meanwhile.
package track
