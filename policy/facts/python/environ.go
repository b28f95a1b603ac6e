package python

import (
	"slices"
	"strings"
)

// usesEnv: the whole environment handed to a call is a use of all of it.
func (it *interp) usesEnv(name string, v *val, n *node) {
	if strings.HasPrefix(name, "os.exec") || strings.HasPrefix(name, "os.spawn") || strings.HasPrefix(name, "os.posix_spawn") {
		return // as any program that is started gets it
	}
	if name == "os.environ.update" {
		return // it is put back where it was
	}
	if (shows[name] || writes[lastPart(name)]) && v.kind != kRef && slices.Contains(v.origins(0), everyVariable) {
		it.dumpEnv(n)
		return
	}
	if v.kind == kRef && v.text == "os.environ" && fills[lastPart(name)] {
		it.picks++
		it.listEnv(n) // what the template names
		it.picks--
		return
	}
	if v.kind == kRef && v.text == "os.environ" && name != "dict" && it.looksUp(name) {
		it.picks++
		it.listEnv(n) // what it gives is told where that is given out
		it.picks--
		return
	}
	if v.kind == kRef && v.text == "os.environ" && name != "dict" || shows[name] && v.kind == kObj && v.text == "os.environ.copy" {
		it.dumpEnv(n)
	}
}

// looksUp reports a function of another module of which nothing is known but
// that it is handed the environment as it is, as it could read it by itself, and
// whose name does not say that it gives things out.
func (it *interp) looksUp(name string) bool {
	last := strings.ToLower(lastPart(name))
	if _, known := it.b.API(name); known || builtins[name] || name[0] == '?' || name[0] == '.' || !strings.Contains(name, ".") || quietModules[name[:strings.IndexByte(name, '.')]] {
		return false
	}
	return it.ordinary(name) && !gives[last] && !slices.ContainsFunc(giving, func(w string) bool { return strings.Contains(last, w) })
}

// oneOfEnv: a function that gets something, of the environment and a name as a
// variable has it, gets that variable.
func (it *interp) oneOfEnv(name string, a *arguments) bool {
	if len(a.pos) < 2 || len(a.pos) > 3 || !a.pos[0].everyEnv() || a.pos[0].kind != kRef || !it.ordinary(name) || !strings.Contains(name, ".") {
		return false
	}
	last := strings.ToLower(lastPart(name))
	key, ok := a.pos[1].oneText()
	return ok && len(last) > 3 && strings.HasPrefix(last, "get") && key != "" && strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// giving are parts of the names of functions that give out what they are given,
// gives are such names.
var (
	giving = strings.Fields(`print echo dump log show writ send post put publish emit render format serial encod upload stor sav display inspect report submit push
		debug request fetch exec spawn system repr json yaml`)
	gives = set(`info warn warning err error get call run open str text`)
)

// shows are functions that give a whole mapping out as text.
var shows = set(`json.dumps json.dump pprint.pprint pprint.pformat str repr yaml.dump yaml.safe_dump pickle.dump pickle.dumps
	rich.print logging.info logging.debug`)

// fills are methods that take from a mapping what a text names.
var fills = map[string]bool{"substitute": true, "safe_substitute": true, "format_map": true}

// writes are methods and functions that give out what they are given.
var writes = set(`write writelines write_text write_bytes send sendall sendto post put request urlopen info debug warning error log
	dump dumps print writerow writerows system popen`)
