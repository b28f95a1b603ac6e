package javascript

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Names that mean more than their text.
const (
	globalName         = "globalThis"
	envName            = "process.env"
	unknownConstructor = "?.constructor"
	unknownSuffix      = ".?"
)

// globalAliases are the other names of the global object.
var globalAliases = map[string]bool{
	"globalThis": true, "global": true, "window": true, "self": true, "frames": true, "top": true, "GLOBAL": true, "root": true,
}

// moduleAliases give modules that wrap another, or that are a global by another name, the name that the tables know.
var moduleAliases = map[string]string{
	"fs/promises": "fs.promises", "fs-extra": "fs", "graceful-fs": "fs", "original-fs": "fs", "mz/fs": "fs.promises",
	"fs-extra/esm": "fs", "mz/child_process": "child_process", "child-process-promise": "child_process",
	"promisify-child-process": "child_process", "cross-spawn": "child_process.spawn", "node-fetch": "fetch",
	"cross-fetch": "fetch", "isomorphic-fetch": "fetch", "node-fetch-native": "fetch", "ws": "WebSocket",
	"isomorphic-ws": "WebSocket", "buffer": "globalThis", "process": "process", "timers": "globalThis",
	"dns/promises": "dns", "path/posix": "path", "path/win32": "path", "globalthis": "globalThis",
	"console": "console", "axios/index": "axios", "readline/promises": "readline",
	"timers/promises": "timers", "bun": "Bun", "stream/promises": "stream",
}

// nameAliases are members that are another thing by its own name.
var nameAliases = map[string]string{
	"process.mainModule.constructor": "module", "require.main": "module", "module.parent": "module", "module.Module": "module",
	"module.constructor": "module", "module.require": "require", "fs.default": "fs", "path.posix": "path",
	"path.win32": "path", "url.URL": "URL", "undici.fetch": "fetch", "fetch.default": "fetch", "fetch.fetch": "fetch",
	"util.TextDecoder": "TextDecoder", "util.TextEncoder": "TextEncoder", "child_process.spawn.sync": "child_process.spawnSync",
	"child_process.spawn.spawn": "child_process.spawn", "WebSocket.WebSocket": "WebSocket", "dns.promises": "dns",
	"require.extensions": "module._extensions", "process.env.env": "process.env.env", "Bun.env": envName,
	"import.meta.env": envName, "Deno.default": "Deno", "module.globalPaths": "module.globalPaths",
	"crypto.webcrypto": "crypto",
}

// sourceOf says where the value of a name comes from.
var sourceOf = map[string]string{
	envName: "env", "process.argv": "argv", "process.stdin": "stdin", "Deno.args": "argv", "Bun.argv": "argv",
	"document.cookie": "cookie", "process.execArgv": "argv", "process.pid": "own_process",
}

// canonical joins a name and a member, and gives the result the name that the tables know. kept says that the result
// is still a member of the same object.
func canonical(base, key string) (name string, kept bool) {
	switch key {
	case "default":
		return base, true
	case "constructor":
		if base != "module" && base != "process.mainModule" {
			return "Function", false
		}
	}
	name = joinName(base, key)
	if name == "…" {
		return "", false
	}
	if a, ok := nameAliases[name]; ok {
		return a, false
	}
	return name, true
}

// moduleName is a module as the tables spell it.
func moduleName(spec string) string {
	spec = strings.TrimPrefix(spec, "node:")
	if a, ok := moduleAliases[spec]; ok {
		return a
	}
	return spec
}

// watched are the names whose lookalikes are worth a fact.
var watched = map[string]bool{
	"eval": true, "Function": true, "require": true, "process": true, "exec": true, "execSync": true, "spawn": true,
	"spawnSync": true, "constructor": true, "child_process": true, "globalThis": true, "global": true, "window": true,
	"import": true, "setTimeout": true, "setInterval": true, "module": true, "fetch": true, "unlink": true, "fs": true,
}

// lookalike gives the watched name that an identifier looks like. JavaScript compares identifiers as they are, so a
// lookalike is another name; someone may still be meant to read it as this one.
func lookalike(name string) (string, bool) {
	var b strings.Builder
	for _, r := range norm.NFKC.String(norm.NFKD.String(name)) {
		switch {
		case r >= 0x300 && r <= 0x36f, r == 0x200c, r == 0x200d:
			continue // combining marks and joiners
		}
		if t, ok := twins[r]; ok {
			b.WriteByte(t)
			continue
		}
		b.WriteRune(r)
	}
	s := b.String()
	return s, watched[s] && s != name
}

// twins are letters of other scripts that look like a Latin one.
var twins = map[rune]byte{
	'а': 'a', 'в': 'b', 'с': 'c', 'ԁ': 'd', 'е': 'e', 'һ': 'h', 'і': 'i', 'ј': 'j', 'ӏ': 'l', 'ո': 'n', 'о': 'o', 'р': 'p',
	'ԛ': 'q', 'ѕ': 's', 'т': 't', 'ս': 'u', 'ѵ': 'v', 'ѡ': 'w', 'х': 'x', 'у': 'y', 'ᴢ': 'z', 'А': 'A', 'В': 'B', 'С': 'C',
	'Е': 'E', 'Ғ': 'F', 'Н': 'H', 'І': 'I', 'Ј': 'J', 'К': 'K', 'М': 'M', 'О': 'O', 'Р': 'P', 'Ѕ': 'S', 'Т': 'T', 'Х': 'X',
	'α': 'a', 'ϲ': 'c', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x', 'γ': 'y',
	'Α': 'A', 'Β': 'B', 'Ε': 'E', 'Ζ': 'Z', 'Η': 'H', 'Ι': 'I', 'Κ': 'K', 'Μ': 'M', 'Ν': 'N', 'Ο': 'O', 'Ρ': 'P', 'Τ': 'T',
	'ɑ': 'a', 'ⅼ': 'l', 'ǀ': 'l', 'ı': 'i', 'ȷ': 'j', 'ɡ': 'g', 'ʟ': 'l', 'ᴠ': 'v', 'ᴀ': 'a', 'ᴇ': 'e', 'ꓲ': 'l',
	'Ꭼ': 'E', 'ꮪ': 's', 'Ꮩ': 'V', 'Ꭺ': 'A', 'Ꮮ': 'L', 'ꬲ': 'e', 'ꭵ': 'i', 'ꮩ': 'v', 'ꮯ': 'c', 'ℓ': 'l', 'ꓦ': 'V', 'ꓮ': 'A',
}
