package python

import "strings"

// userHandlers change who the program runs as.
func userHandlers() map[string]handler {
	out := map[string]handler{}
	for _, name := range strings.Fields("setuid seteuid setreuid setresuid setgid setegid setregid setresgid setgroups initgroups") {
		out["os."+name] = (*invocation).changeUser
	}
	return out
}

// fromLesser is the origin of users and groups that are certainly not those with
// all rights.
const fromLesser = "lesser"

// changeUser marks a user who has fewer rights than any that there may be.
func (c *invocation) changeUser() *val {
	if c.open || len(c.pos) == 0 || len(c.keys) > 0 {
		return nil
	}
	for _, v := range c.pos {
		if !lesser(v, c.name == "os.initgroups") {
			return nil
		}
	}
	c.pos = append([]*val{c.pos[0].with([]string{fromLesser})}, c.pos[1:]...)
	return nil
}

// rightful are users and groups that have, or can take, the rights of all.
var rightful = map[string]bool{
	"root": true, "toor": true, "wheel": true, "sudo": true, "admin": true, "adm": true, "docker": true, "lxd": true, "disk": true, "kmem": true, "shadow": true,
	"staff": true, "": true,
}

// firstUser is the number of the first user and group that is nobody's but a
// person's.
const firstUser = 1000

// lesser: the number of a user or group by its name, a person's number, none, or
// the name itself.
func lesser(v *val, named bool) bool {
	switch v.kind {
	case kInt:
		n, ok := v.int()
		return ok && (n >= firstUser || n == -1)
	case kList, kTuple:
		return len(v.x.items) == 0 && !v.open
	case kStr:
		name, ok := v.one()
		return named && ok && !rightful[name]
	case kRef:
		if v.text != "pwd.getpwnam.pw_uid" && v.text != "pwd.getpwnam.pw_gid" && v.text != "grp.getgrnam.gr_gid" || v.x == nil || v.x.self == nil || v.x.self.x == nil || len(v.x.self.x.recv) != 1 {
			return false
		}
		name, ok := v.x.self.x.recv[0].One()
		return ok && !rightful[name]
	default:
		return false
	}
}

// recordField names what stands at a place of the record of a user or a group.
func recordField(record string, place *val) string {
	i, ok := place.int()
	switch {
	case ok && record == "pwd.getpwnam" && i == 2:
		return "pw_uid"
	case ok && record == "pwd.getpwnam" && i == 3:
		return "pw_gid"
	case ok && record == "grp.getgrnam" && i == 2:
		return "gr_gid"
	}
	return ""
}
