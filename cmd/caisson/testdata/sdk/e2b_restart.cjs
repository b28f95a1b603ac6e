// Goes on with a sandbox whose server is killed and started again: it says ready,
// and reads a line once that is done.
const assert = require('node:assert/strict')
const readline = require('node:readline')
const { Sandbox } = require('e2b')

async function main() {
  const sbx = await Sandbox.create()
  await sbx.files.write('kept', 'kept')
  const url = await sbx.downloadUrl('kept')
  const h = await sbx.commands.run('while read x; do echo $x; done', { background: true, stdin: true, timeoutMs: 0 })
  await h.sendStdin('before\n')
  while (h.stdout !== 'before\n') await new Promise((next) => setTimeout(next, 20))
  const broken = assert.rejects(h.wait())
  const snap = await sbx.createSnapshot()
  const resting = await Sandbox.create({ metadata: { resting: 'yes' } })
  await resting.files.write('rests', 'rests')
  await resting.pause({ keepMemory: false })
  console.log('ready')
  for await (const _ of readline.createInterface({ input: process.stdin })) break
  await broken
  assert.equal(await sbx.files.read('kept'), 'kept')
  assert.equal(await (await fetch(url)).text(), 'kept')
  const again = await sbx.commands.connect(h.pid, { timeoutMs: 0 })
  await again.sendStdin('after\n')
  while (again.stdout !== 'after\n') await new Promise((next) => setTimeout(next, 20))
  await again.closeStdin()
  assert.equal((await again.wait()).exitCode, 0)
  assert.equal((await (await sbx.commands.connect(h.pid)).wait()).exitCode, 0)
  assert.equal(await sbx.kill(), true)
  const made = await Sandbox.create(snap.snapshotId)
  assert.equal(await made.files.read('kept'), 'kept')
  assert.equal((await resting.getInfo()).state, 'paused')
  await resting.connect()
  assert.equal(await resting.files.read('rests'), 'rests')
  assert.equal(await Sandbox.deleteSnapshot(snap.snapshotId), true)
  for (const s of [made, resting]) assert.equal(await s.kill(), true)
  console.log('done')
}

main().then(() => process.exit(0), (e) => { console.error(e); process.exit(1) })
