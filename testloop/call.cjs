// Calls one function of what is staged in solution/ beside this file, as standard
// input asks, and puts out what it returns as JSON. What that is worth is judged by
// whoever reads it.
const fs = require('fs')
const path = require('path')

const asked = JSON.parse(fs.readFileSync(0, 'utf8'))
process.stdout.write = process.stderr.write.bind(process.stderr)
import(path.join(__dirname, 'solution', asked.file)).then(async (m) => {
  const f = m[asked.function] ?? m.default?.[asked.function]
  const text = JSON.stringify(await f(...asked.args))
  fs.writeSync(1, text === undefined ? 'null' : text)
}).catch((e) => {
  console.error(e)
  process.exit(1)
})
