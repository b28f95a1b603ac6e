package python

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// A key search hashes, or tries, one candidate after the other and compares
// what comes of it with something that the loop does not change.

// hashers are functions that hash, by the last part of their names.
var hashers = map[string]bool{
	"md5": true, "sha1": true, "sha224": true, "sha256": true, "sha384": true, "sha512": true, "blake2b": true, "blake2s": true,
	"sha3_256": true, "sha3_512": true, "scrypt": true, "pbkdf2_hmac": true, "crypt": true, "hashpw": true, "nthash": true, "lmhash": true,
}

// keyedHashers are functions that hash, by their whole names.
var keyedHashers = map[string]bool{"hmac.new": true, "hashlib.new": true, "hmac.digest": true}

// verifiers compare a candidate with a hash themselves.
var verifiers = map[string]bool{"checkpw": true, "check_password_hash": true, "compare_digest": true}

// unlockers open something with a password.
var unlockers = map[string]bool{
	"extractall": true, "extract": true, "setpassword": true, "load_key": true, "open_database": true, "unlock": true, "decrypt": true,
}

// maxOwnKeys is how many keys a program has itself, and tries one after the other:
// the one of today, and those before.
const maxOwnKeys = 4

// ownKeys reports a loop over few things that stand there, and goes through no
// others in what it computes.
func ownKeys(n *node) bool {
	over, few := n.child("right"), true
	if n.kind != "for_statement" || over == nil || over.kind != "tuple" && over.kind != "list" {
		return false
	}
	over.each(func(c *node) { few = few && c.kind != "list_splat" })
	return few && over.nth(maxOwnKeys) == nil && !n.holds("for_in_clause")
}

// holds reports a node of a kind under n.
func (n *node) holds(kind string) bool {
	for c := n.first; c != nil; c = c.next {
		if c.kind == kind || c.size > 1 && c.holds(kind) {
			return true
		}
	}
	return false
}

// search notices a key search in a loop.
func (it *interp) search(n *node) {
	if it.quiet > 0 || n.size > 2000 || !it.searching() || ownKeys(n) {
		return
	}
	body := n.child("body")
	if body == nil {
		return
	}
	s := &candidates{it: it, names: map[string]bool{}, content: map[string]bool{}, hashes: map[string]bool{}}
	s.targets(n)
	s.tables = map[string]bool{}
	s.dictionaries(body)
	for range 3 {
		s.spread(body)
	}
	if len(s.names) > 0 && s.compares(body) {
		it.structure(facts.StructKeySearch, "candidates are hashed or tried one by one", n)
	}
}

// searching reports that the text has anything to search keys with.
func (it *interp) searching() bool {
	if it.shape.search == 0 {
		it.shape.search = 1
		for _, w := range []string{"hashlib", "bcrypt", "crypt", "passlib", "hmac", "zipfile", "Crypto.Cipher", "rarfile", "pikepdf", "py7zr", "werkzeug"} {
			if strings.Contains(it.t.src, w) {
				it.shape.search = 2
			}
		}
	}
	return it.shape.search == 2
}

// candidates are the names in a loop that stand for what is tried, for the
// content of files, and for hashes of what is tried.
type candidates struct {
	it                     *interp
	names, content, hashes map[string]bool
	tables                 map[string]bool // names that stand for a dictionary, and for nothing else
}

// targets are the names that loops bind.
func (s *candidates) targets(n *node) {
	if n.kind == "for_statement" || n.kind == "for_in_clause" {
		s.bind(n.child("left"), s.names)
	}
	for c := n.first; c != nil; c = c.next {
		if c.kind == "augmented_assignment" {
			s.bind(c.child("left"), s.names)
		}
		if c.size > 1 {
			s.targets(c)
		}
	}
}

// dictionaries notes names that the loop binds to new dictionaries alone: what
// they are updated with is no hash of it.
func (s *candidates) dictionaries(n *node) {
	for c := n.first; c != nil; c = c.next {
		if name := s.it.t.text(c); c.kind == "identifier" && (c.field == "left" || c.field == "name" && n.kind == "named_expression" || binding[n.kind]) {
			r := n.child("right")
			_, bound := s.tables[name]
			s.tables[name] = n.kind == "assignment" && r != nil && r.kind == "dictionary" && (!bound || s.tables[name])
		}
		if c.size > 1 {
			s.dictionaries(c)
		}
	}
}

// binding are parts of targets that bind the names in them.
var binding = set("pattern_list tuple_pattern list_pattern list_splat_pattern as_pattern_target")

func (s *candidates) bind(n *node, to map[string]bool) {
	if n == nil {
		return
	}
	if n.kind == "identifier" {
		to[s.it.t.text(n)] = true
	}
	for c := n.first; c != nil; c = c.next {
		s.bind(c, to)
	}
}

// spread follows assignments: what is made of a candidate is one.
func (s *candidates) spread(n *node) {
	for c := n.first; c != nil; c = c.next {
		if c.kind == "assignment" || c.kind == "named_expression" || c.kind == "as_pattern" {
			l, r := c.child("left"), c.child("right")
			if c.kind == "named_expression" {
				l, r = c.child("name"), c.child("value")
			}
			if c.kind == "as_pattern" {
				l, r = c.child("alias"), c.nth(0)
			}
			switch {
			case l == nil || r == nil:
			case s.reads(r):
				s.bind(l, s.content)
			case s.hashed(r):
				s.digests(l)
			case s.it.mentions(r, s.names) && !s.it.mentions(r, s.content):
				s.bind(l, s.names)
			}
		}
		if c.kind == "call" && n.kind == "expression_statement" { // m.update(candidate)
			if f := c.child("function"); f != nil && f.kind == "attribute" && s.it.t.text(f.child("attribute")) == "update" && s.it.mentions(c.child("arguments"), s.names) {
				if of := f.child("object"); !s.tables[s.it.t.text(of)] || s.hashed(c.child("arguments")) {
					s.digests(of)
				}
			}
		}
		if c.size > 1 {
			s.spread(c)
		}
	}
}

// digests binds what a hash is kept in: an attribute by its whole name, since
// the object that has it is no hash.
func (s *candidates) digests(n *node) {
	if n != nil && n.kind == "attribute" {
		s.hashes[s.it.t.text(n)] = true
		return
	}
	s.bind(n, s.hashes)
}

// readers give the content of a file or of a connection.
var readers = []string{"read(", "read_bytes(", "read_text(", "readline(", "readlines(", "open(", ".get(", "recv(", ".content", "getsize(", "stat("}

func (s *candidates) reads(n *node) bool {
	text := s.it.t.text(n)
	for _, r := range readers {
		if strings.Contains(text, r) {
			return true
		}
	}
	return false
}

// hashed reports an expression that holds a hash of a candidate.
func (s *candidates) hashed(n *node) bool {
	if (n.kind == "identifier" && n.field != "attribute" || n.kind == "attribute") && s.hashes[s.it.t.text(n)] {
		return true
	}
	if n.kind == "call" && (hashers[s.callee(n)] || keyedHashers[s.it.t.text(n.child("function"))]) {
		if args := n.child("arguments"); s.it.mentions(args, s.names) && !s.it.mentions(args, s.content) && !s.reads(args) {
			return true
		}
	}
	for c := n.first; c != nil; c = c.next {
		if c.field == "arguments" && c.nth(maxParts) != nil {
			continue // one of many things that something is made of
		}
		if s.hashed(c) {
			return true
		}
	}
	return false
}

// maxParts is how many arguments a function has at most that gives a hash in
// another form.
const maxParts = 4

func (s *candidates) callee(n *node) string {
	f := n.child("function")
	if f == nil {
		return ""
	}
	name := s.it.t.text(f)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// compares looks for the comparison of a hash with what the loop does not
// change, or for a candidate that is tried.
func (s *candidates) compares(n *node) bool {
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "comparison_operator":
			l, r := c.nth(0), c.nth(1)
			if l != nil && r != nil && (s.hashed(l) && s.still(r) || s.hashed(r) && s.still(l)) && !s.collects(c) {
				return true
			}
		case "call":
			if s.tries(c) {
				return true
			}
		}
		if c.size > 1 && s.compares(c) {
			return true
		}
	}
	return false
}

// collects: "in" asks whether it was seen before.
func (s *candidates) collects(n *node) bool {
	for c := n.first; c != nil; c = c.next {
		if !c.named && (c.kind == "in" || c.kind == "not in") {
			return true
		}
	}
	return false
}

// still: the loop does not change it.
func (s *candidates) still(n *node) bool {
	return !s.it.mentions(n, s.names) && !s.it.mentions(n, s.content) && !s.reads(n) && n.kind != "none"
}

// tries reports a call that takes a candidate as a password, or a hash that is
// looked at for how it begins.
func (s *candidates) tries(c *node) bool {
	name, args := s.callee(c), c.child("arguments")
	if args == nil {
		return false
	}
	switch {
	case name == "startswith":
		f := c.child("function")
		if f == nil {
			return false
		}
		of := f.child("object")
		return s.hashed(of) || of != nil && strings.Contains(s.it.t.text(of), ".decrypt(") && s.it.mentions(of, s.names)
	case verifiers[name]:
		return s.it.mentions(args, s.names) || s.hashed(args)
	case name == "open" && strings.Contains(s.it.t.text(c.child("function")), "pdf"), unlockers[name]:
		for k := args.first; k != nil; k = k.next {
			if k.kind == "keyword_argument" && password(s.it.t.text(k.child("name"))) && s.it.mentions(k.child("value"), s.names) {
				return true
			}
		}
		return name == "setpassword" && s.it.mentions(args, s.names)
	}
	return false
}

func password(name string) bool {
	return name == "pwd" || name == "password" || name == "passwd" || name == "passphrase" || name == "pw"
}
