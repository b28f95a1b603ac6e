package javascript_test

import (
	"os"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// program is 200 lines of a plain program of node.
func program() string {
	unit := `const fs = require('fs')
const path = require('path')
const { spawn } = require('child_process')

class Store {
  constructor (root, options = {}) {
    this.root = root
    this.options = { encoding: 'utf8', ...options }
    this.cache = new Map()
  }

  async load (name) {
    if (this.cache.has(name)) {
      return this.cache.get(name)
    }
    const file = path.join(this.root, name + '.json')
    const text = await fs.promises.readFile(file, this.options.encoding)
    const value = JSON.parse(text)
    this.cache.set(name, value)
    return value
  }

  list (filter) {
    const names = []
    for (const entry of fs.readdirSync(this.root)) {
      if (!entry.endsWith('.json') || (filter && !filter.test(entry))) {
        continue
      }
      names.push(entry.slice(0, -5))
    }
    return names.sort()
  }
}

function git (args, cb) {
  const child = spawn('git', ['-C', __dirname].concat(args), { stdio: 'pipe' })
  let out = ''
  child.stdout.on('data', chunk => { out += chunk })
  child.on('close', code => cb(code === 0 ? null : new Error('exit ' + code), out.trim()))
}
`
	var b strings.Builder
	for range 5 { // 40 lines each, with the two that make it a block
		b.WriteString("{\n" + unit + "}\n")
	}
	return b.String()
}

func BenchmarkExtract(b *testing.B) {
	src := program()
	if f := os.Getenv("BENCH_FILE"); f != "" {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		src = string(text)
	}
	b.ReportAllocs()
	for b.Loop() {
		scan(b, facts.JavaScript, src)
	}
}
